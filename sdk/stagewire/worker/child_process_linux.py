"""Children on Linux.

A child stays in the process group of its worker, which is killed as a whole; it asks the kernel to
be killed when the thread that started it ends; and it ends when the socket closes. Each works where
another does not: with the interpreter lock held, or when the worker alone was killed.
"""

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence

from stagewire.worker.child_process import living_children


class LinuxChildProcess:
    """Implements `ChildProcess`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        try:
            # No shell and no code between fork and exec. Its output goes where the worker's goes.
            self._process = subprocess.Popen(
                list(command), env=dict(environment), stdin=theirs.fileno(), cwd="/"
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        living_children.add(self._process.pid)
        self._connection = ours

    @property
    def connection(self) -> socket.socket:
        """This side of the socket."""
        return self._connection

    def kill(self) -> None:
        """Ends it at once, also when it is stopped."""
        self._process.kill()

    def wait(self, seconds: float) -> str | None:
        """Waits for its end; returns how it ended, in words."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        living_children.remove(self._process.pid)
        if code < 0:
            return f"it was ended by signal {-code}"
        return f"it left with exit code {code}"

    def close(self) -> None:
        """Ends one that nobody has spoken to, and closes the socket."""
        self._connection.close()
        self.kill()
        self._process.wait()
        living_children.remove(self._process.pid)


def take_connection() -> socket.socket:
    """Returns the child's side of the socket; standard input is empty from then on.

    A function, or a process that it starts, would otherwise read what is meant for the child.
    """
    connection = socket.socket(fileno=os.dup(0))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return connection


def limit_data(most_bytes: int) -> None:
    """Has allocations fail once this process holds so much more private memory than now."""
    import resource

    with open("/proc/self/status", encoding="ascii") as lines:
        now = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = now + most_bytes
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
