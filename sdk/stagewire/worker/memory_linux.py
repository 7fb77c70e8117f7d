"""Memory of a worker on Linux: proportional set size, from the kernel's own account."""

import contextlib
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stagewire.worker.memory import MemoryUsage

_KIB: Final = 1024
_KNOWN_SECONDS: Final = 10.0
_MOVED_BYTES: Final = 1 << 20
"""Change of all file pages together from which those of models are read anew at once."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Pages of model files as they were read from the full map."""

    files: frozenset[str]
    read_at: float
    all_file_bytes: int
    model_file_bytes: int


class LinuxMeter:
    """Adds this process and its children up."""

    def __init__(
        self,
        root: Path,
        *,
        known_seconds: float = _KNOWN_SECONDS,
        children: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        self._known_seconds = known_seconds
        self._own = _ProcessMeter(root, known_seconds)
        self._find_children = children
        # Replaced as a whole: the measurer and the loader both measure.
        self._children: dict[int, _ProcessMeter] = {}
        # Not in every C library, such as musl.
        self._malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns anonymous memory, and the resident pages of the named mapped files."""
        usage = self._own.measure(model_files)
        known = self._children
        children = self._children = {
            pid: known.get(pid) or _ProcessMeter(Path(f"/proc/{pid}"), self._known_seconds)
            for pid in self._find_children()
        }
        for child in children.values():
            # One that has just ended occupies nothing.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                usage += child.measure(model_files)
        return usage

    def trim(self) -> None:
        """Gives freed memory back; without it glibc keeps half of what a load used for a moment."""
        if self._malloc_trim is not None:
            self._malloc_trim(0)


class _ProcessMeter:
    """Reads `smaps_rollup` of one process, and `smaps` for the pages of model files."""

    def __init__(self, root: Path, known_seconds: float) -> None:
        self._root = root
        self._known_seconds = known_seconds
        # Replaced as a whole: the measurer and the loader both measure.
        self._known: _Known | None = None

    def measure(self, model_files: frozenset[str]) -> MemoryUsage:
        """Returns anonymous memory, and the resident pages of the named mapped files.

        In a worker with a thousand mappings the kernel walks pages for 10 ms for the rollup, and
        for another 20 ms for the full map. That one is read when the sum of all file pages in the
        rollup has moved, and now and then; the pages of models may be a MiB off in between.
        """
        anonymous = all_files = 0
        with (self._root / "smaps_rollup").open() as lines:
            for line in lines:
                if line.startswith("Pss_Anon:"):
                    anonymous = int(line.split()[1]) * _KIB
                elif line.startswith("Pss_File:"):
                    all_files = int(line.split()[1]) * _KIB
        if not model_files:
            return MemoryUsage(anonymous, 0)
        known = self._known
        if known is None or not self._still_holds(known, model_files, all_files):
            now = time.monotonic()
            known = _Known(model_files, now, all_files, self._resident_bytes(model_files))
            self._known = known
        return MemoryUsage(anonymous, known.model_file_bytes)

    def _still_holds(self, known: _Known, files: frozenset[str], all_file_bytes: int) -> bool:
        return (
            known.files == files
            and abs(known.all_file_bytes - all_file_bytes) < _MOVED_BYTES
            and time.monotonic() - known.read_at < self._known_seconds
        )

    def _resident_bytes(self, files: frozenset[str]) -> int:
        text = (self._root / "smaps").read_bytes()
        return sum(_resident_bytes_of(text, file.encode()) for file in files) * _KIB


def _resident_bytes_of(text: bytes, file: bytes) -> int:
    """Returns the KiB of all mappings of one file. Searched, not split: a map has 20,000 lines."""
    total = 0
    name_end = file + b"\n"
    found = text.find(name_end)
    while found >= 0:
        line_start = text.rfind(b"\n", 0, found) + 1
        # Addresses, rights, offset, device and inode stand before the path, which may have spaces.
        if text[line_start : found + len(file)].split(maxsplit=5)[5:] == [file]:
            size = text.index(b"\nPss:", found) + len(b"\nPss:")
            total += int(text[size : text.index(b"kB", size)])
        found = text.find(name_end, found + len(name_end))
    return total
