"""Not outliving the coordinator, on Linux.

Two independent means. The kernel ends this process when the thread that started it ends, also while
the GIL is held, but says nothing to its children. A thread that reads standard input ends the whole
process group at end of file, but needs the GIL. A child that a worker starts calls
`die_with_parent` too.
"""

import ctypes
import os
import signal
import threading
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_READ_BYTES: Final = 4096
ORPHAN_EXIT_CODE: Final = 70


def die_with_parent(parent_pid: int | None = None) -> None:
    """Has the kernel kill this process when its parent dies; ends it if that happened before.

    Call it first of all, and again with the parent's pid as soon as that is known: a parent that
    died before the first call gives no signal.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    if parent_pid is not None and os.getppid() != parent_pid:
        os._exit(ORPHAN_EXIT_CODE)


def end_with_input(descriptor: int = 0) -> threading.Thread:
    """Starts a thread that ends the whole process group when a pipe from the coordinator closes."""
    thread = threading.Thread(
        target=_wait_for_end, args=(descriptor,), name="lifeline", daemon=True
    )
    thread.start()
    return thread


def _wait_for_end(descriptor: int) -> None:
    try:
        while os.read(descriptor, _READ_BYTES):
            pass
    finally:
        # A group that somebody else leads, such as that of a shell, is not this worker's to end.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(ORPHAN_EXIT_CODE)
