"""What the ledger shows: every constraint and every reservation at one moment."""

import enum
from dataclasses import dataclass

from coordinator.facts.ids import ConstraintId, Incarnation
from coordinator.facts.proof import Grade
from coordinator.ledger.reservation import Measurement, Owner, Reservation


class ClaimState(enum.StrEnum):
    """Where the bytes of an owner stand."""

    PROMISED = "promised"
    """Nobody uses them yet."""
    OCCUPIED = "occupied"
    """A living process uses them."""
    QUARANTINED = "quarantined"
    """Its process is lost, and not yet proven gone."""


@dataclass(frozen=True, slots=True)
class ConstraintLine:
    """One constraint and what is charged to it."""

    constraint: ConstraintId
    parent: ConstraintId | None
    limit_bytes: int
    reserved_bytes: int
    grade: Grade


@dataclass(frozen=True, slots=True)
class ReservationLine:
    """One reservation, where it stands, and what its owner was measured to occupy."""

    reservation: Reservation
    state: ClaimState
    incarnation: Incarnation | None
    """Life of the process that uses it."""
    is_leaving: bool
    """Released, and kept until its process gives it back."""
    measurement: Measurement | None


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """The whole ledger at one moment; equal snapshots mean equal ledgers."""

    constraints: tuple[ConstraintLine, ...]
    reservations: tuple[ReservationLine, ...]
    waiting: tuple[Owner, ...]
    """Owners whose loads wait, the next one first."""
    loading: tuple[Owner, ...]
