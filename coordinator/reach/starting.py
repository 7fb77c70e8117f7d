"""Starting workers: what is told to a process, and what is held of it until it ended."""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

START_LINE_BYTES: Final = 4096
"""Longest start line: the pipe of a new process always holds that much, so writing cannot block."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """How to start one worker."""

    python: Path
    module: str
    log_path: Path
    thread_count: int
    """Largest thread count of its stages, for libraries that read it from the environment."""
    message: Mapping[str, Any] = field(repr=False)
    """First line of its standard input, with its token (JSON values, hence Any)."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables beside the few that every worker gets."""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: by an exit code or by a signal."""

    exit_code: int | None
    signal: int | None

    @classmethod
    def from_return_code(cls, return_code: int) -> "ExitStatus":
        """Reads the convention of the subprocess module."""
        if return_code < 0:
            return cls(None, -return_code)
        return cls(return_code, None)

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.exit_code}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"


class StartedProcess(Protocol):
    """A process that the coordinator started. Used from its event loop only."""

    @property
    def pid(self) -> int:
        """Its process id; stays its own until `wait` has returned."""

    @property
    def exit_status(self) -> ExitStatus | None:
        """How it ended; None while it lives."""

    def executing(self) -> frozenset[int]:
        """Returns the executions that it noted to run; after its death those that it died with."""

    async def wait(self) -> ExitStatus:
        """Returns when it ended. By then its process group is killed and its log is complete."""

    def close_input(self) -> None:
        """Closes its standard input, which asks it to end itself."""

    def kill_group(self) -> bool:
        """Kills it and what it started; says whether there was anything left to kill."""

    async def aclose(self) -> None:
        """Kills what is left of it, waits for its end and frees everything that is held of it."""


class ProcessStarter(Protocol):
    """Starts processes in the way of one operating system."""

    def start(self, order: StartOrder) -> StartedProcess:
        """Starts a worker. Called from the main thread, inside its event loop.

        Raises:
            WorkerStartError: the operating system does not start it.
        """


def process_starter() -> ProcessStarter:
    """Returns the starter for this operating system.

    Raises:
        NotImplementedError: there is none.
    """
    if sys.platform == "linux":
        from coordinator.reach.starting_linux import LinuxProcessStarter

        return LinuxProcessStarter()
    raise NotImplementedError(f"the coordinator does not run on {sys.platform}")
