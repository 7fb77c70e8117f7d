"""Memory of running processes, measured from outside and the same way for every arm."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

_KIB: Final = 1024
_SAMPLE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one or more processes."""

    anonymous_bytes: int
    """Proportional set size of pages that belong to no file."""
    model_bytes: int
    """Resident pages of mapped model files, whole: both sides map the same files at once, and a
    proportional size would halve them for either."""

    @property
    def total_bytes(self) -> int:
        """Both together."""
        return self.anonymous_bytes + self.model_bytes


def memory(pids: Iterable[int], model_root: Path) -> Memory:
    """Returns the memory of processes together."""
    anonymous = model = 0
    for pid in pids:
        folder = Path("/proc") / str(pid)
        anonymous += sum(_sizes((folder / "smaps_rollup").open(encoding="utf-8"), "Pss_Anon:"))
        model += sum(_sizes((folder / "smaps").open(encoding="utf-8"), "Rss:", str(model_root)))
    return Memory(anonymous, model)


def _sizes(lines: Iterable[str], field: str, root: str = "") -> Iterator[int]:
    """Yields a field of every mapping of a file below `root`, or of all mappings."""
    is_counted = not root
    for line in lines:
        # A mapping's first line starts with its addresses, the others with a capital.
        if root and line[0] in "0123456789abcdef":
            path = line.split(maxsplit=5)[5:]
            is_counted = bool(path) and path[0].startswith(root)
        elif is_counted and line.startswith(field):
            yield int(line.split()[1]) * _KIB


class PeakMemory:
    """Samples memory while a block runs; the peak is of the sum, not the sum of peaks.

    It costs CPU time, so that it has a round of its own.
    """

    def __init__(self, pids: Sequence[int], model_root: Path) -> None:
        self._pids = pids
        self._model_root = model_root
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory")
        self.peak_bytes = 0

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._is_over.wait(_SAMPLE_SECONDS):
            now = memory(self._pids, self._model_root).total_bytes
            self.peak_bytes = max(self.peak_bytes, now)
