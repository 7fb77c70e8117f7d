"""What is known of the present incarnation of a worker."""

from dataclasses import dataclass, field
from typing import Final

from coordinator.facts.ids import StageId
from coordinator.facts.proof import Grade, Verdict
from coordinator.gateway.incarnation import Attached
from coordinator.reach.starting import StartedProcess
from stagewire.v1 import capability_pb2

LOADING: Final = "loading"
LOADED: Final = "loaded"
"""Two of the phases of a stage that is not ready."""


@dataclass(frozen=True, slots=True)
class LoadedStage:
    """A stage that is resident in an incarnation."""

    measured_bytes: int
    load_seconds: float
    verdict: Verdict
    grade: Grade
    evidence: str
    thread_settings: tuple[capability_pb2.ThreadSetting, ...] = ()
    """Threads and cores in force, as its worker read them back."""
    anonymous_bytes: tuple[int, int] | None = None
    """Anonymous memory of its process before and after the load; None when that was not said."""


@dataclass(slots=True)
class Hosting:
    """What is known of one incarnation."""

    attached: Attached | None = None
    process: StartedProcess | None = None
    stages: dict[StageId, LoadedStage] = field(default_factory=dict)
    phases: dict[StageId, str] = field(default_factory=dict)
    """What is being done to stages that are not ready."""

    def phase_of(self, stage: StageId) -> str:
        """Returns what is being done to a stage; of a load what its executor says of it."""
        phase = self.phases.get(stage, "")
        said = self.attached.phases.get(stage) if self.attached is not None else None
        return said if said and phase == LOADING else phase

    def awaited(self) -> str:
        """Returns what stands between this incarnation and READY, for people."""
        if self.attached is None:
            return "its Hello"
        return ", ".join(
            f"stage {stage!r} ({self.phase_of(stage)})"
            for stage, phase in self.phases.items()
            if phase != LOADED
        )
