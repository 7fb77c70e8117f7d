"""Budgets: what a plan allows its stages and workers, as reservations and beside measurements."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.facts.ids import ConstraintId, StageId, WorkerId
from coordinator.facts.proof import Grade
from coordinator.facts.sizes import format_size
from coordinator.ledger.reservation import (
    COORDINATOR,
    Lifetime,
    Owner,
    Reservation,
    stage_owner,
    transport_owner,
    worker_owner,
)

COORDINATOR_BYTES: Final = 96 << 20
"""What the coordinator's own process is allowed: interpreter, gRPC, state of the requests."""


@dataclass(frozen=True, slots=True)
class WorkerBudget:
    """What the process of a worker may occupy before it loads a stage."""

    worker_id: WorkerId
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class StageBudget:
    """What a stage may occupy in the process of the worker that it was placed on."""

    stage_id: StageId
    worker_id: WorkerId
    resident_bytes: int
    load_peak_bytes: int
    """Most that it reaches while loading, what stays resident included."""
    per_request_bytes: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class TransportBudget:
    """What may be under way to a stage, and from it to clients."""

    stage_id: StageId
    port_bytes: tuple[int, ...]
    """Most that one request may have under way, for each of those ports."""
    request_count: int
    """Requests that run at once or wait: the inputs of those that wait are held as well."""


def plan_reservations(
    workers: Iterable[WorkerBudget],
    stages: Iterable[StageBudget],
    transports: Iterable[TransportBudget],
    leaf: ConstraintId,
) -> tuple[Reservation, ...]:
    """Returns everything that a plan needs on the host, the coordinator itself included."""
    own = Reservation(
        COORDINATOR, Lifetime.RESIDENT, COORDINATOR_BYTES, leaf, COORDINATOR, "its own process"
    )
    reservations = [own]
    for worker in workers:
        owner = worker_owner(worker.worker_id)
        field = f"workers.{worker.worker_id}.memory.resident"
        reservations.append(
            Reservation(
                owner,
                Lifetime.RESIDENT,
                worker.resident_bytes,
                leaf,
                owner,
                "process and libraries",
                plan_field=field,
            )
        )
    for stage in stages:
        reservations.extend(_stage_reservations(stage, leaf))
    for transport in transports:
        reservations.append(
            Reservation(
                transport_owner(transport.stage_id),
                Lifetime.TRANSPORT,
                sum(transport.port_bytes) * transport.request_count,
                leaf,
                COORDINATOR,
                f"items under way, {transport.request_count} request(s)",
                Grade.D,
            )
        )
    return tuple(reservations)


def _stage_reservations(stage: StageBudget, leaf: ConstraintId) -> Iterable[Reservation]:
    owner, process = stage_owner(stage.stage_id), worker_owner(stage.worker_id)
    memory = f"stages.{stage.stage_id}.memory"
    lines = (
        (Lifetime.RESIDENT, stage.resident_bytes, "weights and state", f"{memory}.resident"),
        (
            Lifetime.LOAD,
            max(0, stage.load_peak_bytes - stage.resident_bytes),
            "peak of the load above what stays",
            f"{memory}.load_peak",
        ),
        (
            Lifetime.REQUEST,
            stage.per_request_bytes * stage.concurrency,
            f"{stage.concurrency} request(s) at once",
            f"{memory}.per_request",
        ),
    )
    for lifetime, size_bytes, purpose, field in lines:
        # Even of nothing there is a reservation: what has none may not load.
        if size_bytes or lifetime is Lifetime.RESIDENT:
            yield Reservation(owner, lifetime, size_bytes, leaf, process, purpose, plan_field=field)


class BudgetKind(enum.StrEnum):
    """Which budget of an owner was too small."""

    RESIDENT = "resident"
    PEAK = "peak"


@dataclass(frozen=True, slots=True)
class FailedBudget:
    """A budget below its measurement."""

    owner: Owner
    kind: BudgetKind
    budget_bytes: int
    measured_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.owner}: {self.kind} budget {format_size(self.budget_bytes)},"
            f" measured {format_size(self.measured_bytes)};"
            f" raise it by {format_size(self.measured_bytes - self.budget_bytes)}"
        )


def steady_bytes(reservations: Sequence[Reservation]) -> int:
    """Returns what reservations hold outside loads."""
    return sum(item.size_bytes for item in reservations if item.lifetime is not Lifetime.LOAD)


def load_excess_bytes(reservations: Sequence[Reservation]) -> int:
    """Returns what the load of one owner needs beyond its steady reservations.

    A stage serves nothing while it loads, so its load may use what is kept for its own requests.
    """
    load = sum(item.size_bytes for item in reservations if item.lifetime is Lifetime.LOAD)
    request = sum(item.size_bytes for item in reservations if item.lifetime is Lifetime.REQUEST)
    return max(0, load - request)
