"""Reaching workers: their environments, their interpreters and the start of their processes."""
