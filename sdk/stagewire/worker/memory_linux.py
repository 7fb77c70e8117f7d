"""Memory of this process on Linux: proportional set size, from the kernel's own account."""

import ctypes
from pathlib import Path
from typing import Final

from stagewire.worker.memory import MemoryUsage

_KIB: Final = 1024


class LinuxMeter:
    """Reads `smaps_rollup`, and `smaps` for the pages of model files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # Not in every C library, such as musl.
        self._malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns anonymous memory, and the resident pages of the named mapped files.

        The rollup takes a fraction of a millisecond; the full map is read only when a stage maps
        files.
        """
        anonymous = 0
        with (self._root / "smaps_rollup").open() as lines:
            for line in lines:
                if line.startswith("Pss_Anon:"):
                    anonymous = int(line.split()[1]) * _KIB
        return MemoryUsage(anonymous, self._resident_bytes(model_files) if model_files else 0)

    def trim(self) -> None:
        """Gives freed memory back; without it glibc keeps half of what a load used for a moment."""
        if self._malloc_trim is not None:
            self._malloc_trim(0)

    def _resident_bytes(self, files: frozenset[str]) -> int:
        total = 0
        is_model = False
        with (self._root / "smaps").open() as lines:
            for line in lines:
                # A mapping's first line starts with its addresses, the others with a capital.
                if line[0] in "0123456789abcdef":
                    path = line.split(maxsplit=5)[5:]
                    is_model = bool(path) and path[0].rstrip("\n") in files
                elif is_model and line.startswith("Pss:"):
                    total += int(line.split()[1]) * _KIB
        return total
