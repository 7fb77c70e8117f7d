"""Constraints: limits on the bytes of a pool, as a tree. A child limits a part of its parent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from coordinator.facts.ids import ConstraintId, PoolId
from coordinator.facts.proof import Grade
from stagewire.errors import FieldInvalidError

HOST_RAM: Final = PoolId("host:ram")
PHYSICAL: Final = ConstraintId("machine:physical")
LESS_RESERVE: Final = ConstraintId("machine:ram")
CGROUP: Final = ConstraintId("machine:cgroup")
AVAILABLE: Final = ConstraintId("machine:available")
QUOTA: Final = ConstraintId("machine:quota")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One limit on the bytes of one pool."""

    constraint: ConstraintId
    pool: PoolId
    limit_bytes: int
    parent: ConstraintId | None
    grade: Grade
    """How the limit was obtained."""
    relief: str
    """What would make room, for people; `{limit}` and `{missing}` stand for sizes."""


class ConstraintTree:
    """The constraints of a machine; fixed for the life of a ledger."""

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        self._constraints: dict[ConstraintId, Constraint] = {}
        self._charges: dict[ConstraintId, tuple[ConstraintId, ...]] = {}
        for item in constraints:
            if item.constraint in self._constraints:
                raise ValueError(f"constraint {item.constraint} is given twice")
            ancestors: tuple[ConstraintId, ...] = ()
            if item.parent is not None:
                # Parents come first, hence no cycle is possible.
                if item.parent not in self._constraints:
                    raise ValueError(f"parent {item.parent} of {item.constraint} is unknown")
                if self._constraints[item.parent].pool != item.pool:
                    raise ValueError(f"{item.constraint} and its parent are of different pools")
                ancestors = self._charges[item.parent]
            self._constraints[item.constraint] = item
            self._charges[item.constraint] = (item.constraint, *ancestors)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._constraints.values())

    def __getitem__(self, constraint: ConstraintId) -> Constraint:
        return self._constraints[constraint]

    def charges(self, leaf: ConstraintId) -> tuple[ConstraintId, ...]:
        """Returns a constraint and every ancestor, leaf first."""
        return self._charges[leaf]


@dataclass(frozen=True, slots=True)
class HostMemoryLimits:
    """What is known of the memory of the host before any worker was started."""

    physical_bytes: int | None
    """None when unknown: then the quota alone counts, as an estimate."""
    available_bytes: int | None = None
    """What other programs leave."""
    cgroup_bytes: int | None = None
    os_reserve_bytes: int = 0
    """What the plan leaves to everything else; not taken off a quota."""
    quota_bytes: int | None = None
    """What the plan may use, as a person said it."""


def host_constraints(limits: HostMemoryLimits) -> tuple[Constraint, ...]:
    """Returns the constraints on the memory of the host, parents first; the last one is the leaf.

    Raises:
        FieldInvalidError: neither the physical memory nor a quota is known.
    """
    quota = limits.quota_bytes
    steps: list[tuple[ConstraintId, int, Grade, str]] = []
    if limits.physical_bytes is not None:
        steps.append((PHYSICAL, limits.physical_bytes, Grade.D, "run it on a machine with {limit}"))
        if quota is None and limits.os_reserve_bytes:
            less_reserve = max(0, limits.physical_bytes - limits.os_reserve_bytes)
            relief = "lower policies.os_reserve by {missing}"
            steps.append((LESS_RESERVE, less_reserve, Grade.D, relief))
    if limits.cgroup_bytes is not None:
        relief = "raise the memory limit of the cgroup to {limit}"
        steps.append((CGROUP, limits.cgroup_bytes, Grade.D, relief))
    if limits.available_bytes is not None:
        relief = "close programs that hold {missing}"
        steps.append((AVAILABLE, limits.available_bytes, Grade.D, relief))
    if quota is not None:
        grade = Grade.E if limits.physical_bytes is None else Grade.D
        steps.append((QUOTA, quota, grade, "raise --ram to {limit}"))
    elif limits.physical_bytes is None:
        raise FieldInvalidError(
            "the memory of this machine cannot be read; say what the plan may use with --ram",
            field="--ram",
        )
    parents = (None, *(step[0] for step in steps))
    return tuple(
        Constraint(name, HOST_RAM, limit, parent, grade, relief)
        for (name, limit, grade, relief), parent in zip(steps, parents, strict=False)
    )
