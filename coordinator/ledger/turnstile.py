"""The turnstile of loads: which of the waiting loads may begin. First come, first served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.facts.ids import ConstraintId
from coordinator.ledger.reservation import Owner


@dataclass(frozen=True, slots=True)
class PendingLoad:
    """A load that waits for its turn."""

    owner: Owner
    excess_bytes: Mapping[ConstraintId, int]
    """What it needs while it runs, beyond what its owner holds anyway."""


def loads_that_may_begin(
    waiting: Sequence[PendingLoad], free_bytes: Mapping[ConstraintId, int]
) -> tuple[Owner, ...]:
    """Returns the owners whose loads may begin now, together.

    A load that does not fit holds back those behind it, or a large one would wait for ever.
    """
    left_bytes = dict(free_bytes)
    turns: list[Owner] = []
    for load in waiting:
        if any(needed > left_bytes[name] for name, needed in load.excess_bytes.items()):
            break
        for name, needed in load.excess_bytes.items():
            left_bytes[name] -= needed
        turns.append(load.owner)
    return tuple(turns)
