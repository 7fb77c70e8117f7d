"""Reservations: bytes of one pool promised to one owner for one purpose and lifetime."""

import enum
from dataclasses import dataclass
from typing import Final, NewType

from coordinator.facts.ids import ConstraintId, StageId, WorkerId
from coordinator.facts.proof import Grade

Owner = NewType("Owner", str)
"""Who a reservation is for, such as `stage:hear`, `worker:cpu` or `transport:hear`."""

COORDINATOR: Final = Owner("coordinator")
"""Owner of what the coordinator's own process occupies."""


def stage_owner(stage_id: StageId) -> Owner:
    """Returns the owner of what a stage occupies in the process of its worker."""
    return Owner(f"stage:{stage_id}")


def worker_owner(worker_id: WorkerId) -> Owner:
    """Returns the owner of what a worker occupies before it loads a stage."""
    return Owner(f"worker:{worker_id}")


def transport_owner(stage_id: StageId) -> Owner:
    """Returns the owner of what is under way to a stage, and from it to clients."""
    return Owner(f"transport:{stage_id}")


class Lifetime(enum.StrEnum):
    """When reserved bytes are in use."""

    LOAD = "load"
    """Only during the load of the owner, beyond what stays resident."""
    RESIDENT = "resident"
    REQUEST = "request"
    TRANSPORT = "transport"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Bytes promised to one owner until released."""

    owner: Owner
    lifetime: Lifetime
    size_bytes: int
    constraint: ConstraintId
    """The leaf; it and every ancestor are charged."""
    process: Owner
    """Owner of the process that the bytes are in: the worker of a stage."""
    purpose: str
    """What the bytes hold, for people."""
    grade: Grade = Grade.E
    plan_field: str = ""
    """Field of the plan that sets the size; empty when none does."""

    def __post_init__(self) -> None:
        if self.size_bytes < 0:
            raise ValueError(f"{self.owner}: a reservation cannot be negative")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an owner was seen to occupy."""

    measured_bytes: int
    """The last measurement; zero once the process is gone."""
    peak_bytes: int
    """The largest one."""
