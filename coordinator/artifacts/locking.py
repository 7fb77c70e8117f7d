"""Locks between processes that share a cache."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_RETRY_SECONDS: Final = 0.1


def acquire(path: Path) -> int | None:
    """Takes a lock; returns the descriptor whose closing gives it back, or None if another has it.

    The system gives the lock back when its process ends in whatever way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def holding(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds a lock; calls `waiting` again and again while another process has it."""
    # Asked repeatedly instead of blocking in the kernel, so that `waiting` can end the wait.
    while (descriptor := acquire(path)) is None:
        waiting()
        time.sleep(_RETRY_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)
