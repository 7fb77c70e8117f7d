"""What a worker process occupies, as the ledger counts it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes of one process."""

    anonymous_pss_bytes: int
    model_file_bytes: int

    @property
    def total_bytes(self) -> int:
        """What the ledger compares with the budget."""
        return self.anonymous_pss_bytes + self.model_file_bytes


class MemoryMeter(Protocol):
    """Measures the process that it is in."""

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns anonymous memory, and the resident pages of the named mapped files."""

    def trim(self) -> None:
        """Gives memory that was freed in this process back to the operating system."""


def make_meter(root: Path = Path("/proc/self")) -> MemoryMeter:
    """Returns the meter of this operating system."""
    if sys.platform == "linux":
        from stagewire.worker.memory_linux import LinuxMeter

        return LinuxMeter(root)
    from stagewire.worker.memory_windows import WindowsMeter

    return WindowsMeter()
