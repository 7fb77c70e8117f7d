"""The arithmetic of a refusal: who needs what, what is missing, the smallest change that fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.ledger.budgets import load_excess_bytes, steady_bytes
from coordinator.ledger.constraints import Constraint
from coordinator.ledger.reservation import Lifetime, Owner, Reservation
from stagewire.errors import ConstraintExceededError

_MIB: Final = 1 << 20
_SLACK: Final = 5
"""Part of a budget that may be too much: who lowers one further only meets its measurement."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What is, or would be, charged to one constraint."""

    constraint: Constraint
    claims: Mapping[Owner, Sequence[Reservation]]
    """Reservations that charge the constraint, by owner."""
    asked: frozenset[Owner] = frozenset()
    """Owners that ask; the others hold theirs already."""
    running_load_bytes: int = 0
    """What the loads that run now use beyond their steady reservations."""

    @property
    def steady_bytes(self) -> int:
        """What is reserved outside loads."""
        return sum(steady_bytes(items) for items in self.claims.values())

    @property
    def load_bytes(self) -> int:
        """Room for loads: that of the largest one, as they wait for each other."""
        largest = max((load_excess_bytes(items) for items in self.claims.values()), default=0)
        return max(largest, self.running_load_bytes)

    @property
    def reserved_bytes(self) -> int:
        """All of it."""
        return self.steady_bytes + self.load_bytes

    @property
    def missing_bytes(self) -> int:
        """What is above the limit; zero or less when it fits."""
        return self.reserved_bytes - self.constraint.limit_bytes


def exceeded(charge: Charge, others: Sequence[Charge]) -> ConstraintExceededError:
    """Returns the refusal of a charge that is over its limit; `others` are over theirs as well."""
    constraint = charge.constraint
    lines = [
        f"it needs {_exact(charge.reserved_bytes)} under {constraint.constraint}, which allows"
        f" {_exact(constraint.limit_bytes)}: {_exact(charge.missing_bytes)} are missing",
        *_table(charge),
        "smallest change that fits: " + "; or ".join(_changes(charge)),
    ]
    if others:
        names = ", ".join(
            f"{item.constraint.constraint} by {_exact(item.missing_bytes)}" for item in others
        )
        lines.append(f"also exceeded: {names}")
    return ConstraintExceededError(
        "\n".join(lines),
        constraint=str(constraint.constraint),
        needed_bytes=charge.reserved_bytes,
        limit_bytes=constraint.limit_bytes,
        missing_bytes=charge.missing_bytes,
    )


def _table(charge: Charge) -> list[str]:
    rows = [
        (
            item.owner if item.owner in charge.asked else f"{item.owner} (held)",
            item.lifetime.value,
            _exact(item.size_bytes),
            item.purpose,
        )
        for items in charge.claims.values()
        for item in items
        if item.lifetime is not Lifetime.LOAD
    ]
    if charge.load_bytes:
        largest = max(charge.claims, key=lambda owner: load_excess_bytes(charge.claims[owner]))
        purpose = f"largest load, {largest}; one at a time"
        rows.append(("loads", "load", _exact(charge.load_bytes), purpose))
    rows.append(("sum", "", _exact(charge.reserved_bytes), ""))
    rows.append(("limit", "", _exact(charge.constraint.limit_bytes), charge.constraint.constraint))
    rows.append(("missing", "", _exact(charge.missing_bytes), ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        f"  {name:<{widths[0]}}  {lifetime:<{widths[1]}}  {size:>{widths[2]}}  {note}".rstrip()
        for name, lifetime, size, note in rows
    ]


def _changes(charge: Charge) -> list[str]:
    missing = charge.missing_bytes
    changes = [
        charge.constraint.relief.format(
            limit=_rounded_up(charge.reserved_bytes), missing=_rounded_up(missing)
        )
    ]
    if (load := _lower_load(charge)) is not None:
        changes.append(load)
    reducible = [
        item
        for owner in charge.claims
        if owner in charge.asked
        for item in charge.claims[owner]
        if item.lifetime is Lifetime.RESIDENT and item.plan_field
    ]
    largest = max(reducible, key=lambda item: item.size_bytes, default=None)
    if largest is not None and largest.size_bytes >= missing * _SLACK:
        changes.append(
            f"lower {largest.plan_field} by {_rounded_up(missing)}, if it takes so much less"
        )
    elif (names := _fewest_owners(charge)) is not None:
        changes.append(f"leave out {' and '.join(names)}")
    return changes


def _lower_load(charge: Charge) -> str | None:
    """Returns the change of one load peak that is enough alone, if there is one."""
    excess = sorted(
        ((load_excess_bytes(items), owner) for owner, items in charge.claims.items()), reverse=True
    )
    if not excess or excess[0][1] not in charge.asked:
        return None
    floor_bytes = max(charge.running_load_bytes, excess[1][0] if len(excess) > 1 else 0)
    if excess[0][0] - floor_bytes < charge.missing_bytes:
        return None
    items = charge.claims[excess[0][1]]
    if steady_bytes(items) + excess[0][0] < charge.missing_bytes * _SLACK:
        return None
    for item in items:
        if item.lifetime is Lifetime.LOAD and item.plan_field:
            return (
                f"lower {item.plan_field} by {_rounded_up(charge.missing_bytes)}, if it takes so"
                " much less"
            )
    return None


def _fewest_owners(charge: Charge) -> list[Owner] | None:
    """Returns the largest stages that free enough together, or None when all of them do not."""
    stages = sorted(
        (owner for owner in charge.asked if owner.startswith("stage:")),
        key=lambda owner: (-steady_bytes(charge.claims.get(owner, ())), owner),
    )
    freed_bytes = 0
    for count, owner in enumerate(stages, start=1):
        freed_bytes += steady_bytes(charge.claims.get(owner, ()))
        if freed_bytes >= charge.missing_bytes:
            # All of them are no change to a plan but its end.
            return stages[:count] if count < len(stages) else None
    return None


def _exact(size_bytes: int) -> str:
    if 0 < size_bytes < _MIB // 10:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / _MIB:,.1f} MiB"


def _rounded_up(size_bytes: int) -> str:
    return f"{-(-size_bytes // _MIB)}MiB"
