"""Coordinator: reads a plan, places its stages, runs the workers and streams tensors between them."""
