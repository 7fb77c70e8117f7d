"""The restart policy: growing delays, and a breaker that opens when a worker is lost too often.

Pure: events come in with their times, decisions go out. Times are seconds of one monotonic clock.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from stagewire.errors import StageFailedError


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """How patient the policy is."""

    first_delay_seconds: float = 0.1
    growth: float = 2.0
    """Factor from one delay to the next."""
    longest_delay_seconds: float = 30.0
    jitter: float = 0.2
    """Part of a delay by which it is drawn longer or shorter: workers must not start in step."""
    intensity: int = 5
    """Losses within the period that are answered by a restart; the next one opens the breaker."""
    period_seconds: float = 60.0
    calm_seconds: float = 60.0
    """Time READY after which earlier losses are forgotten."""
    end_seconds: float = 5.0
    """Time that a killed process gets to end; one in the hands of a driver may never do so."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """The worker is to be started again after a delay."""

    delay_seconds: float
    restart: int
    """Number of this restart since the last calm."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The breaker is open: requests are refused at once until a person acts."""

    reason: str
    """Reason in the table of failures."""
    message: str


Decision: TypeAlias = StartAgain | GiveUp


@dataclass(frozen=True, slots=True)
class RestartHistory:
    """What the policy remembers of one worker; every event returns the next history."""

    losses: tuple[float, ...] = ()
    """Times of the losses within the period."""
    restarts: int = 0
    """Restarts since the last calm; sets the delay."""
    ready_since: float | None = None
    is_open: bool = False
    """Whether the breaker is open."""

    def ready(self, now: float) -> "RestartHistory":
        """Notes that the worker became READY."""
        return replace(self, ready_since=now)

    def lost(
        self, now: float, random_unit: float, limits: RestartLimits
    ) -> tuple["RestartHistory", Decision]:
        """Notes a loss and decides: exit, hang and missed start deadline alike.

        `random_unit` is a random number from 0 to 1.
        """
        if self.is_open:
            return replace(self, ready_since=None), _give_up(len(self.losses), limits)
        was_calm = self.ready_since is not None and now - self.ready_since >= limits.calm_seconds
        restarts = 0 if was_calm else self.restarts
        earlier = () if was_calm else self.losses
        losses = (*(time for time in earlier if now - time < limits.period_seconds), now)
        if len(losses) > limits.intensity:
            opened = RestartHistory(losses, restarts, is_open=True)
            return opened, _give_up(len(losses), limits)
        decision = StartAgain(_delay_seconds(restarts, random_unit, limits), restarts + 1)
        return RestartHistory(losses, restarts + 1), decision

    def reset(self) -> "RestartHistory":
        """Closes the breaker and forgets everything: a person asked for a start."""
        return RestartHistory()


def _delay_seconds(restarts: int, random_unit: float, limits: RestartLimits) -> float:
    # The exponent is bounded: a worker that flaps for weeks must not overflow a float.
    grown = limits.first_delay_seconds * limits.growth ** min(restarts, 64)
    spread = 1.0 + limits.jitter * (2.0 * random_unit - 1.0)
    return min(grown, limits.longest_delay_seconds) * spread


def _give_up(losses: int, limits: RestartLimits) -> GiveUp:
    return GiveUp(
        StageFailedError.reason,
        f"lost {losses} times in {limits.period_seconds:g} s; {StageFailedError.recovery}",
    )
