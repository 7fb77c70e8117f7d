"""Which cores each stage keeps to: sets of its own where there are enough, and why not elsewhere.

A stage that computes on a core of its own is neither moved nor delayed by others; but a core that
waits for its stage while others queue for theirs is wasted. So either every stage that leaves it to
us gets as many cores as it has threads, or all of them share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from coordinator.facts.cores import HostCores, spell_cores
from coordinator.facts.ids import StageId, WorkerId
from stagewire.errors import PlacementRefusedError

CoreChoice: TypeAlias = Literal["auto", "shared"] | tuple[int, ...]
_NAMED: Final = "the plan names them"


@dataclass(frozen=True, slots=True)
class CoreWish:
    """What one placed stage wants."""

    stage_id: StageId
    worker_id: WorkerId
    thread_count: int
    choice: CoreChoice = "auto"
    is_on_cpu: bool = True
    """One that computes elsewhere shares unless its plan names cores."""


@dataclass(frozen=True, slots=True)
class StageCores:
    """Where the threads of one stage run."""

    cores: tuple[int, ...]
    """Empty for any."""
    why: str

    def __str__(self) -> str:
        return spell_cores(self.cores) if self.cores else "any"


def assign_cores(wishes: Sequence[CoreWish], host: HostCores | None) -> dict[StageId, StageCores]:
    """Decides the cores of every stage, in the order of the wishes.

    Raises:
        PlacementRefusedError: a plan names cores that this process may not use.
    """
    if host is not None:
        _check_named(wishes, host)
    found = {
        wish.stage_id: StageCores(tuple(sorted(wish.choice)), _NAMED)
        for wish in wishes
        if isinstance(wish.choice, tuple)
    }
    automatic = [wish for wish in wishes if wish.choice == "auto" and wish.is_on_cpu]
    others = [w for w in wishes if w.stage_id not in found and w not in automatic]
    reason = "the cores of this machine are not known"
    if host is not None and automatic:
        named = {core for stage in found.values() for core in stage.cores}
        own, reason = _own_sets(automatic, host, named, len(others))
        found |= own
    _share(found, wishes, host, reason)
    return {wish.stage_id: found[wish.stage_id] for wish in wishes}


def _check_named(wishes: Sequence[CoreWish], host: HostCores) -> None:
    lines, facts = [], {}
    for wish in wishes:
        if not isinstance(wish.choice, tuple):
            continue
        missing = sorted(set(wish.choice) - host.usable)
        if missing:
            lines.append(
                f"  {wish.stage_id}: cores {spell_cores(missing)} cannot be used;"
                f" write some of {spell_cores(host.usable)}, auto or shared"
            )
            facts[f"stage:{wish.stage_id}"] = spell_cores(missing)
    if lines:
        text = "\n".join([f"{len(lines)} of {len(wishes)} stages have no such cores", *lines])
        raise PlacementRefusedError(text, **facts)  # type: ignore[arg-type]  # no fact is named retry_delay_ms


def _own_sets(
    stages: Sequence[CoreWish], host: HostCores, named: set[int], shared_count: int
) -> tuple[dict[StageId, StageCores], str]:
    """Returns a set for each stage, or none at all and why."""
    pools = [_Pool([c for c in group if c not in named], len(group)) for group in host.groups]
    wanted = sum(stage.thread_count for stage in stages)
    # Whoever shares needs a core as well that nobody else keeps to.
    free = min(sum(len(pool.cores) for pool in pools), host.at_once - len(named)) - (
        1 if shared_count else 0
    )
    if wanted > free:
        beside = f", {len(named)} are named by other stages" if named else ""
        beside += ", one is for those that share" if shared_count else ""
        return {}, (
            f"{len(stages)} stages want {wanted} of their own and {host.at_once} can run at once"
            f"{beside}"
        )
    whole = [pool for pool in pools if pool.is_whole]
    in_cores = len(whole) - (1 if shared_count else 0) >= wanted
    why = "physical cores of its own" if in_cores else "hardware threads of its own"
    found = {}
    for stage in _worker_by_worker(stages):
        count = stage.thread_count
        cores = _whole_cores(whole, count) if in_cores else _hardware_threads(pools, count)
        found[stage.stage_id] = StageCores(tuple(sorted(cores)), why)
    return found, ""


@dataclass(slots=True)
class _Pool:
    """What is left of one physical core."""

    cores: list[int]
    size: int

    @property
    def is_whole(self) -> bool:
        return len(self.cores) == self.size


def _worker_by_worker(stages: Sequence[CoreWish]) -> list[CoreWish]:
    workers = list(dict.fromkeys(stage.worker_id for stage in stages))
    # Large ones first, so that they get whole physical cores.
    return sorted(stages, key=lambda stage: (workers.index(stage.worker_id), -stage.thread_count))


def _whole_cores(pools: list[_Pool], count: int) -> list[int]:
    taken = pools[:count]
    del pools[:count]
    return [core for pool in taken for core in pool.cores]


def _hardware_threads(pools: Sequence[_Pool], count: int) -> list[int]:
    taken: list[int] = []
    for pool in pools:
        if pool.is_whole and pool.size <= count - len(taken):
            taken += pool.cores
            pool.cores = []
    # The rest beside whoever has a part of a core already, before another core is broken up.
    for pool in sorted(pools, key=lambda pool: pool.is_whole):
        rest = count - len(taken)
        taken += pool.cores[:rest]
        del pool.cores[:rest]
    return taken


def _share(
    found: dict[StageId, StageCores],
    wishes: Sequence[CoreWish],
    host: HostCores | None,
    reason: str,
) -> None:
    """Gives the cores that nobody has to all stages without a set, or any where all are taken."""
    taken = {core for stage in found.values() for core in stage.cores}
    left = tuple(sorted((host.usable if host is not None else set()) - taken)) if taken else ()
    for wish in wishes:
        if wish.stage_id in found:
            continue
        if wish.choice == "shared":
            why = "the plan says shared"
        elif not wish.is_on_cpu:
            why = "it computes on another device"
        else:
            why = f"shared: {reason}"
        found[wish.stage_id] = StageCores(left, why)
