"""Where the stages are at the moment, for the engine."""

from collections.abc import Mapping

from coordinator.app.design import Design
from coordinator.app.worker_life import WorkerLife
from coordinator.facts.ids import StageId, WorkerId
from coordinator.pipeline.history import StageHistory
from coordinator.pipeline.hosted_stage import HostedStage
from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.runner import WorkerRunner
from stagewire.errors import StageStartingError

_RETRY_MS = 500


class Directory:
    """Implements `Hosts` over the workers of a design."""

    def __init__(
        self,
        design: Design,
        lives: Mapping[WorkerId, WorkerLife],
        runners: Mapping[WorkerId, WorkerRunner],
    ) -> None:
        self._design = design
        self._lives = lives
        self._runners = runners
        self._histories = {stage: StageHistory() for stage in design.stages}

    def is_ready(self, stage: StageId) -> bool:
        """Whether a stage takes items."""
        worker = self._design.placement.stages[stage].worker_id
        hosting = self._lives[worker].hosting
        return (
            stage in hosting.stages
            and hosting.attached is not None
            and hosting.attached.fence_reason is None
            and self._runners[worker].phase is WorkerPhase.READY
        )

    def host_of(self, stage: StageId) -> HostedStage:
        """Returns the host of a ready stage.

        Raises:
            StageFailedError: its worker was given up.
            StageStartingError: its worker is starting.
        """
        placed = self._design.placement.stages[stage]
        runner = self._runners[placed.worker_id]
        hosting = self._lives[placed.worker_id].hosting
        if runner.is_given_up:
            raise runner.refusal()
        if not self.is_ready(stage) or hosting.attached is None:
            raise StageStartingError(
                f"stage {stage!r} is starting on worker {placed.worker_id!r}",
                retry_delay_ms=_RETRY_MS,
                stage=stage,
            )
        loaded = hosting.stages[stage]
        return HostedStage(
            stage,
            hosting.attached,
            placed.device,
            loaded.verdict,
            loaded.grade,
            self._design.plan.stages[stage].limits.deadline,
            self._histories[stage],
        )
