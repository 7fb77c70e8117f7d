"""The part of Stagewire that every process shares: wire, tensors, client and worker host."""

__version__ = "0.1.0"

WIRE_VERSION = 1
"""Integer that coordinator and worker compare at registration."""
