"""Pace: which of a stage's executions computes next, by what its listener has left. Pure.

Executions of a realtime stage take turns. Speech is spoken faster than it is heard, so whoever is
far ahead can let others compute and nobody hears it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from stagewire.ports import Port
from stagewire.tensor import Value

MARGIN_SECONDS: Final = 0.2
"""What a listener must still have when its execution gets its turn back. Chosen, not measured: for
the way of an item to its listener where every core computes."""
PATIENCE_SECONDS: Final = 5.0
"""Longest wait for a turn beside a holder that is never ahead enough; then it is given up."""
_REMEMBERED_STEPS: Final = 8


@dataclass(frozen=True, slots=True)
class Claim:
    """An execution that waits for the turn."""

    slack_seconds: float
    """What its listener has ahead; 0 before its first output."""
    waited_seconds: float


@dataclass(slots=True)
class Steps:
    """How long the last steps of a stage took: from one output to the next, computing alone."""

    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_STEPS))

    def note(self, seconds: float) -> None:
        """Remembers one step."""
        self._seconds.append(seconds)

    @property
    def longest_seconds(self) -> float:
        """The longest of them; 0 before the first."""
        return max(self._seconds, default=0.0)


def next_claim(claims: Sequence[Claim]) -> int:
    """Returns the index of the claim that gets the turn: the least slack, then the longest wait.

    One that waited for too long comes before all others, so that none starves.
    """
    overdue = [claim for claim in claims if claim.waited_seconds >= PATIENCE_SECONDS]
    chosen = max(
        overdue or claims,
        key=lambda claim: (
            claim.waited_seconds if overdue else -claim.slack_seconds,
            claim.waited_seconds,
        ),
    )
    return claims.index(chosen)


def gives_way(slack_seconds: float, step_seconds: float, claims: Sequence[Claim]) -> bool:
    """Whether the holder of the turn lets another one compute.

    It does when somebody has less ahead and its own listener outlasts one step of theirs, or when
    somebody waited for too long.
    """
    if any(claim.waited_seconds >= PATIENCE_SECONDS for claim in claims):
        return True
    least = min((claim.slack_seconds for claim in claims), default=slack_seconds)
    return least < slack_seconds and slack_seconds - step_seconds > MARGIN_SECONDS


def played_elements(port: Port, value: Value) -> int:
    """Returns how much of an item a listener plays: its first extent if that varies, else one."""
    shape = getattr(value, "shape", ())
    if port.dimensions and port.dimensions[0].name and shape:
        return int(shape[0])
    return 1
