"""A stage where it is ready, as the engine finds it."""

from dataclasses import dataclass

from coordinator.facts.ids import DeviceId, StageId, WorkerId
from coordinator.facts.proof import Grade, Verdict
from coordinator.gateway.incarnation import Attached
from coordinator.pipeline.history import StageHistory


@dataclass(frozen=True, slots=True)
class HostedStage:
    """A stage that is ready, and the incarnation that hosts it."""

    stage_id: StageId
    attached: Attached
    device: DeviceId
    verdict: Verdict
    grade: Grade
    deadline_seconds: float
    history: StageHistory

    @property
    def worker_id(self) -> WorkerId:
        """Worker that hosts it."""
        return self.attached.worker_id
