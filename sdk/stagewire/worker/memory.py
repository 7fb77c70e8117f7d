"""What a worker occupies, its process and those of its stages, as the ledger counts it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stagewire.worker.child_process import living_children


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes of one process, or of several together."""

    anonymous_pss_bytes: int
    model_file_bytes: int

    @property
    def total_bytes(self) -> int:
        """What the ledger compares with the budget."""
        return self.anonymous_pss_bytes + self.model_file_bytes

    def __add__(self, other: "MemoryUsage") -> "MemoryUsage":
        """Returns what both occupy together."""
        return MemoryUsage(
            self.anonymous_pss_bytes + other.anonymous_pss_bytes,
            self.model_file_bytes + other.model_file_bytes,
        )


class MemoryMeter(Protocol):
    """Measures the process that it is in, with the children that its stages have."""

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns anonymous memory, and the resident pages of the named mapped files."""

    def trim(self) -> None:
        """Gives memory that was freed in this process back; a child does that for itself."""


def make_meter(root: Path = Path("/proc/self")) -> MemoryMeter:
    """Returns the meter of this operating system."""
    if sys.platform == "linux":
        from stagewire.worker.memory_linux import LinuxMeter

        return LinuxMeter(root, children=living_children)
    from stagewire.worker.memory_windows import WindowsMeter

    return WindowsMeter()
