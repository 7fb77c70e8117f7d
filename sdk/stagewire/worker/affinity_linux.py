"""Affinity on Linux, where every thread has its own and hands it to those that it starts."""

import os
from collections.abc import Collection


class LinuxAffinity:
    """Implements `Affinity`."""

    def set(self, cores: Collection[int]) -> None:
        """Keeps the calling thread to some cores."""
        os.sched_setaffinity(0, cores)

    def get(self, thread_id: int) -> frozenset[int]:
        """Returns the cores that a thread may run on."""
        return frozenset(os.sched_getaffinity(thread_id))
