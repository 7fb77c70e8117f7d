"""The watchdog: tells a hang from slow work by the progress of a worker's own threads. Pure.

A worker hangs when no heartbeat comes, as after SIGSTOP or with the GIL held, or when an executor
computes without a step for longer than its stage allows. Times are those of a clock that stands
still while nobody looks (`awake`), so that a machine that slept is no hang.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coordinator.facts.ids import StageId


@dataclass(frozen=True, slots=True)
class Lane:
    """What one heartbeat says about one lane."""

    stage: StageId
    progress: int
    is_busy: bool
    slot: int = 0
    """Which of the stage's threads: one that hangs must not hide behind its siblings."""


@dataclass(slots=True)
class Watchdog:
    """Watches one incarnation, from the time 0 of its clock on."""

    heartbeat_timeout_seconds: float
    hang_timeouts_seconds: Mapping[StageId, float]
    _last_beat: float = 0.0
    _lanes: dict[tuple[StageId, int], tuple[int, float]] = field(default_factory=dict)
    """Progress of the lanes that compute, and since when it has not changed."""

    def beat(self, lanes: Iterable[Lane], now: float) -> None:
        """Notes a heartbeat."""
        self._last_beat = now
        for lane in lanes:
            key = lane.stage, lane.slot
            known = self._lanes.get(key)
            if not lane.is_busy:
                self._lanes.pop(key, None)
            elif known is None or known[0] != lane.progress:
                self._lanes[key] = (lane.progress, now)

    def complaint(self, now: float) -> str | None:
        """Returns why the worker counts as hung; None while it does not."""
        silence = now - self._last_beat
        if silence > self.heartbeat_timeout_seconds:
            return f"no heartbeat for {silence:.1f} s"
        for (stage, _), (_, since) in self._lanes.items():
            limit = self.hang_timeouts_seconds.get(stage)
            # Up to the last heartbeat: what a lane did since then is not known.
            stalled = self._last_beat - since
            if limit is not None and stalled > limit:
                return f"stage {stage!r} made no step for {stalled:.1f} s"
        return None
