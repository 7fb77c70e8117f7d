"""Memory of this process on Windows, where private commit stands for anonymous memory."""

import psutil

from stagewire.worker.memory import MemoryUsage


class WindowsMeter:
    """Reads the process counters; mapped model files are part of the working set there."""

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns the private bytes, and what the working set holds beyond them."""
        usage = psutil.Process().memory_info()
        private = int(getattr(usage, "private", usage.rss))
        shared = max(0, usage.rss - private) if model_files else 0
        return MemoryUsage(private, shared)

    def trim(self) -> None:
        """Needs nothing: the allocator of Windows gives large blocks back at once."""
