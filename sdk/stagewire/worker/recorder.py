"""Notes of this process about what it executes, which whoever started it reads after its death."""

import contextlib
import mmap
import os
import threading
from collections.abc import Iterator

from stagewire.record import ENTRIES, RECORD_BYTES


class Recorder:
    """Writes the record; without memory it writes nothing."""

    def __init__(self) -> None:
        self._entries: memoryview | None = None
        self._free = list(range(ENTRIES))
        self._lock = threading.Lock()

    def open(self, descriptor: int) -> None:
        """Takes the memory behind a descriptor, which it closes."""
        memory = mmap.mmap(descriptor, RECORD_BYTES)
        os.close(descriptor)
        self._entries = memoryview(memory).cast("Q")

    @contextlib.contextmanager
    def executing(self, execution_id: int) -> Iterator[None]:
        """Notes an execution for as long as the block runs; from any thread."""
        with self._lock:
            entry = self._free.pop() if self._entries is not None and self._free else None
        if self._entries is None or entry is None:
            yield
            return
        self._entries[entry] = execution_id
        try:
            yield
        finally:
            self._entries[entry] = 0
            with self._lock:
                self._free.append(entry)


RECORDER = Recorder()
"""The one of this process."""
