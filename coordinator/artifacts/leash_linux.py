"""Starts a command that the kernel ends together with the process that asked for it.

Run as a script in the child: `preexec_fn` is not safe in a process with threads.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def leashed(command: Sequence[str]) -> list[str]:
    """Returns a command line that runs `command` and dies with this process.

    The kernel counts the thread that starts it as the parent: that thread has to wait for its end.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main() -> None:
    """Becomes the command, bound to the life of the parent."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the bond was made.
    if os.getppid() != int(parent):
        sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
