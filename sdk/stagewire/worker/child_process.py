"""The processes that a worker starts for stages of its own, and which of them live."""

import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from stagewire.errors import CapabilityMissingError

CHILD_MODULE: Final = "stagewire.worker.child"


class ChildProcess(Protocol):
    """One process, from its start until it was waited for."""

    @property
    def connection(self) -> socket.socket:
        """This side of the socket that is the child's standard input; the owner closes it."""

    def kill(self) -> None:
        """Ends it at once; it may have ended already."""

    def wait(self, seconds: float) -> str | None:
        """Waits for its end; returns how it ended, in words, or None when it still lives."""

    def close(self) -> None:
        """Ends one that nobody has spoken to, and closes the socket."""


class Living:
    """The processes of this worker's children, so that they are measured with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pids: frozenset[int] = frozenset()

    def add(self, pid: int) -> None:
        """Notes one that was started."""
        with self._lock:
            self._pids |= {pid}

    def remove(self, pid: int) -> None:
        """Notes one that has ended, before its number may go to another process."""
        with self._lock:
            self._pids -= {pid}

    def __call__(self) -> frozenset[int]:
        """Returns those that live."""
        return self._pids


living_children: Final = Living()


def children_can_start() -> bool:
    """Whether stages can have processes of their own on this operating system."""
    return sys.platform == "linux"


def start_child(command: Sequence[str], environment: Mapping[str, str]) -> ChildProcess:
    """Starts a child that ends with the calling thread, which must outlive it.

    Raises:
        CapabilityMissingError: this operating system cannot do that.
        OSError: it cannot be started.
    """
    if sys.platform == "linux":
        from stagewire.worker.child_process_linux import LinuxChildProcess

        return LinuxChildProcess(command, environment)
    raise CapabilityMissingError(
        f"a stage cannot have a process of its own on {sys.platform}; write in_child: false"
    )
