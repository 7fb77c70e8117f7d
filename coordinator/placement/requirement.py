"""What a stage needs, what workers offer, and what was decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.facts.ids import ArtifactId, DeviceId, StageId, WorkerId


@dataclass(frozen=True, slots=True)
class DeviceRule:
    """Which devices a stage may run on; named by device (`cuda:0`) or by kind (`cuda`).

    With `require`, only that device is taken. With `prefer`, the first one that can take the stage
    is; a device that is not listed is not taken. With neither, any that is not forbidden.
    """

    require: str = ""
    prefer: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArtifactChoice:
    """An artifact that a stage may execute."""

    artifact_id: ArtifactId
    artifact_format: str


@dataclass(frozen=True, slots=True)
class StageRequirement:
    """What a stage needs of a worker and a device."""

    stage_id: StageId
    executor: str
    workers: tuple[WorkerId, ...]
    """Workers that may host it, the preferred one first."""
    rule: DeviceRule = DeviceRule()
    artifacts: Mapping[str, ArtifactChoice] = field(default_factory=dict)
    """By device or kind of device; the empty key is for any device. Empty for a function."""
    function: str = ""


@dataclass(frozen=True, slots=True)
class WorkerOffer:
    """A worker of the plan, attached or expected."""

    worker_id: WorkerId
    unavailable_reason: str = ""
    """Why it takes no stage at all, and what to change; empty when it does."""


@dataclass(frozen=True, slots=True)
class LostCandidate:
    """A worker and device that a stage could have had, and why it has not."""

    worker_id: WorkerId | None
    """None where no worker offers the device."""
    device: DeviceId | None
    """None where a worker offers no device at all."""
    why: str

    def __str__(self) -> str:
        worker = f"worker {self.worker_id}" if self.worker_id else None
        return " on ".join(filter(None, (self.device, worker))) + f": {self.why}"


@dataclass(frozen=True, slots=True)
class StagePlacement:
    """Where one stage runs."""

    stage_id: StageId
    worker_id: WorkerId
    device: DeviceId
    artifact: ArtifactChoice | None
    """None for a function."""
    reason: str
    is_fallback: bool
    """Whether a device that the plan prefers was passed over."""
    lost: tuple[LostCandidate, ...]
    """Every other candidate, in the order in which they were considered."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where every stage of a plan runs."""

    stages: Mapping[StageId, StagePlacement]
    """In the order of the plan."""
