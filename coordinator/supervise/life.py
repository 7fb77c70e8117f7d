"""What supervision needs of a worker and of its process; others carry it out."""

import enum
from typing import Protocol

from coordinator.facts.ids import Incarnation
from stagewire.errors import StageError


class WorkerPhase(enum.StrEnum):
    """What a worker is doing."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class Process(Protocol):
    """A started process, as far as supervision needs it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    async def wait(self) -> object:
        """Waits until the process has ended and its group is gone; returns how, as text."""

    async def aclose(self) -> None:
        """Ends the process and everything that it started, at once, and frees what it held here."""


class Life(Protocol):
    """What the coordinator does with one worker; the runner decides when."""

    async def start(self, incarnation: Incarnation) -> Process:
        """Starts the process of an incarnation."""

    async def bring_up(self, incarnation: Incarnation) -> None:
        """Waits for the worker to attach, and loads and proves its stages."""

    def awaited(self) -> str:
        """Returns what `bring_up` waits for at the moment, for people."""

    async def watch(self, incarnation: Incarnation) -> str:
        """Waits for a hang of an incarnation that attached; returns what was seen."""

    def lose(self, incarnation: Incarnation, reason: StageError) -> None:
        """Fences an incarnation: its requests end with the reason."""

    def settle(self, incarnation: Incarnation) -> None:
        """Gives its memory back; its process is proven gone."""

    async def mend(self) -> bool:
        """Builds anew what a start needs, if it was damaged; returns whether it was.

        Raises:
            StageError: it was and could not be built, or needs something of the machine.
        """
