"""Starts a command that ends, with all that it started, together with the process that asked.

Run as a script in the child: `preexec_fn` is not safe in a process with threads.
"""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PARENT_DIED: Final = signal.SIGTERM
_NOT_RUN: Final = 126
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def leashed(command: Sequence[str]) -> list[str]:
    """Returns a command line that runs `command` and dies with this process.

    It has to be started with `start_new_session` and ended with `end_leashed`. The kernel counts
    the thread that starts it as the parent: that thread has to wait for its end.

    Raises:
        OSError: there is no such program, or it may not be run.
    """
    if not os.path.isfile(command[0]):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    if not os.access(command[0], os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), command[0])
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def end_leashed(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    """Kills a leashed command and all that it started; does nothing once its end was seen."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    """Runs the command as a child and ends like it; kills the whole group if the parent dies."""
    parent, *command = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Waited for instead of handled: nothing can come between a look and the wait.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {_PARENT_DIED, signal.SIGCHLD})
    _die_with(int(parent), _PARENT_DIED)
    leash = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with(leash, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _become(command)
    while signal.sigwait({_PARENT_DIED, signal.SIGCHLD}) != _PARENT_DIED:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_like(os.waitstatus_to_exitcode(status))
    os.killpg(0, signal.SIGKILL)


def _become(command: list[str]) -> None:
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(_NOT_RUN)


def _die_with(parent: int, number: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    # The parent may have died before the bond was made.
    if os.getppid() != parent:
        os._exit(_NOT_RUN)


def _end_like(exit_code: int) -> None:
    if exit_code < 0:
        # Whoever waits reads how the command ended; a second core dump says nothing more.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        if -exit_code != signal.SIGKILL:
            signal.signal(-exit_code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -exit_code)
    os._exit(exit_code)


if __name__ == "__main__":
    main()
