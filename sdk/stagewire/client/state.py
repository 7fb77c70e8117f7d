"""What a coordinator says of itself: workers, stages, pipelines and the ledger."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewire import ports
from stagewire.client.receipt import Grade, Verdict, seconds, word
from stagewire.ports import Port
from stagewire.v1 import coordinator_pb2 as pb


class Phase(enum.IntEnum):
    """What a process or a stage is doing; the numbers are those of the wire."""

    UNKNOWN = 0
    """Not said, or a word of a newer version."""
    PENDING = 1
    STARTING = 2
    READY = 3
    RESTARTING = 4
    FAILED = 5
    DRAINING = 6
    STOPPED = 7


@dataclass(frozen=True, slots=True)
class Capability:
    """What one executor of a worker can run on one device."""

    executor: str
    device: str
    formats: tuple[str, ...]
    functions: tuple[str, ...]
    library_version: str
    unavailable_reason: str
    """Why it cannot run anything; empty when it can."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker."""

    worker_id: str
    kind: str
    incarnation: int
    phase: Phase
    restarts: int
    last_reason: str
    """Reason of its last loss; empty before the first."""
    reserved_bytes: int
    measured_bytes: int
    """What it was last measured to occupy; 0 before the first measurement."""
    peak_bytes: int
    capabilities: tuple[Capability, ...] = ()
    """What it can execute, as it says itself; empty while no life of it is attached."""
    prospect: str = ""
    """What comes next for one that was lost, for people; empty when all is well."""


@dataclass(frozen=True, slots=True)
class StageState:
    """One stage."""

    stage_id: str
    worker_id: str
    device: str
    executor: str
    phase: Phase
    verdict: Verdict
    grade: Grade
    evidence: str
    reserved_bytes: int
    measured_bytes: int
    """What its load added to its process, an estimate."""
    load_seconds: float | None
    placement_reason: str
    thread_settings: Mapping[str, str] = field(default_factory=dict)
    """Threads and cores in force, as its worker read them back; empty before it is ready."""


@dataclass(frozen=True, slots=True)
class PipelineState:
    """One pipeline."""

    pipeline: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    is_ready: bool


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """One limit and what is charged to it."""

    constraint: str
    limit_bytes: int
    reserved_bytes: int
    grade: Grade


@dataclass(frozen=True, slots=True)
class ReservationState:
    """One promise of memory."""

    owner: str
    lifetime: str
    size_bytes: int
    measured_bytes: int | None
    """None where nothing is measured alone."""
    grade: Grade


@dataclass(frozen=True, slots=True)
class FailedBudget:
    """One budget that is below what was measured."""

    owner: str
    kind: str
    """Which of its budgets: `resident` or `peak`."""
    budget_bytes: int
    measured_bytes: int


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The account of memory."""

    constraints: tuple[ConstraintState, ...]
    reservations: tuple[ReservationState, ...]
    failed_budgets: tuple[FailedBudget, ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """Everything that a client may know of a coordinator."""

    plan_name: str
    phase: Phase
    workers: tuple[WorkerState, ...]
    stages: tuple[StageState, ...]
    pipelines: tuple[PipelineState, ...]
    ledger: LedgerState


def from_message(message: pb.CoordinatorState) -> CoordinatorState:
    """Returns the state of a wire form.

    Raises:
        FieldInvalidError: a port has an element type that this version does not know.
    """
    return CoordinatorState(
        message.plan_name,
        word(Phase, message.phase),
        tuple(map(_worker, message.workers)),
        tuple(map(_stage, message.stages)),
        tuple(
            PipelineState(
                item.pipeline,
                tuple(map(ports.from_message, item.inputs)),
                tuple(map(ports.from_message, item.outputs)),
                item.is_ready,
            )
            for item in message.pipelines
        ),
        _ledger(message.ledger),
    )


def _worker(message: pb.WorkerState) -> WorkerState:
    return WorkerState(
        worker_id=message.worker_id,
        kind=message.kind,
        incarnation=message.incarnation,
        phase=word(Phase, message.phase),
        restarts=message.restarts,
        last_reason=message.last_reason,
        reserved_bytes=message.reserved_bytes,
        measured_bytes=message.measured_bytes,
        peak_bytes=message.peak_bytes,
        capabilities=tuple(
            Capability(
                row.executor,
                row.device,
                tuple(row.formats),
                tuple(row.functions),
                row.library_version,
                row.unavailable_reason,
            )
            for row in message.capabilities
        ),
        prospect=message.prospect,
    )


def _stage(message: pb.StageState) -> StageState:
    return StageState(
        stage_id=message.stage_id,
        worker_id=message.worker_id,
        device=message.device,
        executor=message.executor,
        phase=word(Phase, message.phase),
        verdict=word(Verdict, message.verdict),
        grade=word(Grade, message.grade),
        evidence=message.evidence,
        reserved_bytes=message.reserved_bytes,
        measured_bytes=message.measured_bytes,
        load_seconds=seconds(message.load_duration) if message.HasField("load_duration") else None,
        placement_reason=message.placement_reason,
        thread_settings={item.name: item.value for item in message.thread_settings},
    )


def _ledger(message: pb.LedgerState) -> LedgerState:
    return LedgerState(
        tuple(
            ConstraintState(
                item.constraint, item.limit_bytes, item.reserved_bytes, word(Grade, item.grade)
            )
            for item in message.constraints
        ),
        tuple(
            ReservationState(
                item.owner,
                item.lifetime,
                item.size_bytes,
                item.measured_bytes if item.HasField("measured_bytes") else None,
                word(Grade, item.grade),
            )
            for item in message.reservations
        ),
        tuple(
            FailedBudget(item.owner, item.kind, item.budget_bytes, item.measured_bytes)
            for item in message.failed_budgets
        ),
    )
