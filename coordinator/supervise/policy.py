"""The restart policy: growing delays, and a breaker that opens when a worker is lost too often.

Pure: events come in with their times, decisions go out. Times are seconds of one monotonic clock.

The breaker closes in three ways: a person asks for a start, or after a cooldown one start on trial
(half-open) brings a worker up that stays READY for the time of a calm.
"""

import enum
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
    cooldown_seconds: float = 300.0
    """Time after which a worker that was given up is started once, on trial."""
    end_seconds: float = 5.0
    """Time that a killed process gets to end; one in the hands of a driver may never do so."""


class Breaker(enum.StrEnum):
    """Whether a worker is started again after a loss."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"
    """One start on trial: the next loss opens the breaker again, a calm closes it."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """The worker is to be started again after a delay."""

    delay_seconds: float
    restart: int
    """Number of this restart since the last calm."""

    @property
    def message(self) -> str:
        """What is going to happen, for people."""
        return f"started again after {self.delay_seconds:.1f} s, restart {self.restart}"


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The breaker is open: requests are refused at once until a person acts or a trial is won."""

    reason: str
    """Reason in the table of failures."""
    message: str
    """What happened and what comes next, for people."""
    trial_seconds: float | None
    """Time until the start on trial; None where only a person can help."""


Decision: TypeAlias = StartAgain | GiveUp


@dataclass(frozen=True, slots=True)
class RestartHistory:
    """What the policy remembers of one worker; every event returns the next history."""

    losses: tuple[float, ...] = ()
    """Times of the losses within the period."""
    restarts: int = 0
    """Restarts since the last calm; sets the delay."""
    ready_since: float | None = None
    breaker: Breaker = Breaker.CLOSED

    def ready(self, now: float) -> "RestartHistory":
        """Notes that the worker became READY."""
        return replace(self, ready_since=now)

    def on_trial(self) -> "RestartHistory":
        """Notes that the worker is started after its cooldown."""
        return replace(self, breaker=Breaker.HALF_OPEN)

    def lost(
        self, now: float, random_unit: float, limits: RestartLimits, *, is_refused: bool = False
    ) -> tuple["RestartHistory", Decision]:
        """Notes a loss and decides: exit, hang and missed start deadline alike.

        `random_unit` is a random number from 0 to 1. `is_refused` says that the start was refused:
        that comes again however often it is tried, until something changes.
        """
        before = RestartHistory() if self._is_calm(now, limits) else self
        recent = (time for time in before.losses if now - time < limits.period_seconds)
        losses = (*recent, now)
        if is_refused:
            opened = RestartHistory(losses, before.restarts, breaker=Breaker.OPEN)
            return opened, _give_up("refused", None)
        if before.breaker is not Breaker.CLOSED:
            opened = RestartHistory(losses, before.restarts, breaker=Breaker.OPEN)
            return opened, _give_up("lost again on trial", limits.cooldown_seconds)
        if len(losses) > limits.intensity:
            opened = RestartHistory(losses, before.restarts, breaker=Breaker.OPEN)
            often = f"lost {len(losses)} times in {limits.period_seconds:g} s"
            return opened, _give_up(often, limits.cooldown_seconds)
        delay_seconds = _delay_seconds(before.restarts, random_unit, limits)
        decision = StartAgain(delay_seconds, before.restarts + 1)
        return RestartHistory(losses, before.restarts + 1), decision

    def reset(self) -> "RestartHistory":
        """Closes the breaker and forgets everything: a person asked for a start."""
        return RestartHistory()

    def breaker_at(self, now: float, limits: RestartLimits) -> Breaker:
        """Returns the breaker as it is at a time: a calm closes it without any event."""
        return Breaker.CLOSED if self._is_calm(now, limits) else self.breaker

    def _is_calm(self, now: float, limits: RestartLimits) -> bool:
        return self.ready_since is not None and now - self.ready_since >= limits.calm_seconds


def _delay_seconds(restarts: int, random_unit: float, limits: RestartLimits) -> float:
    # The exponent is bounded: a worker that flaps for weeks must not overflow a float.
    grown = limits.first_delay_seconds * limits.growth ** min(restarts, 64)
    spread = 1.0 + limits.jitter * (2.0 * random_unit - 1.0)
    return min(grown, limits.longest_delay_seconds) * spread


def _give_up(what: str, trial_seconds: float | None) -> GiveUp:
    trial = "" if trial_seconds is None else f"; tried once more after {trial_seconds:g} s"
    return GiveUp(
        StageFailedError.reason, f"{what}{trial}; {StageFailedError.recovery}", trial_seconds
    )
