"""Artifacts: files that stages execute, their sources, and the cache that holds them checked."""
