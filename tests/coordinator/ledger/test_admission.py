import dataclasses

import pytest

from coordinator.facts.ids import ConstraintId, Incarnation, PoolId, StageId, WorkerId
from coordinator.facts.proof import Grade
from coordinator.ledger.budgets import (
    COORDINATOR_BYTES,
    StageBudget,
    TransportBudget,
    WorkerBudget,
    plan_reservations,
)
from coordinator.ledger.constraints import (
    Constraint,
    ConstraintTree,
    HostMemoryLimits,
    host_constraints,
)
from coordinator.ledger.ledger import Ledger
from coordinator.ledger.reservation import Lifetime, Owner, Reservation, stage_owner
from stagewire.errors import ConstraintExceededError, FieldInvalidError
from stagewire.limits import WINDOW_BYTES

pytestmark = pytest.mark.unit

MIB = 1 << 20
CPU = WorkerId("cpu")


def make_ledger(quota_mib: int, physical_mib: int = 16384) -> tuple[Ledger, ConstraintId]:
    limits = HostMemoryLimits(physical_bytes=physical_mib * MIB, quota_bytes=quota_mib * MIB)
    constraints = host_constraints(limits)
    return Ledger(constraints), constraints[-1].constraint


def make_stage(
    name: str, resident: int, load_peak: int = 0, per_request: int = 0, concurrency: int = 1
) -> StageBudget:
    sizes = (resident * MIB, load_peak * MIB, per_request * MIB)
    return StageBudget(StageId(name), CPU, *sizes, concurrency)


def make_plan(leaf: ConstraintId, *stages: StageBudget) -> tuple[Reservation, ...]:
    workers = [WorkerBudget(CPU, 90 * MIB)]
    return plan_reservations(
        workers, stages, [TransportBudget(StageId("hear"), (8 * MIB,), 3)], leaf
    )


def reserved(ledger: Ledger, constraint: str) -> int:
    lines = {line.constraint: line for line in ledger.snapshot().constraints}
    return lines[ConstraintId(constraint)].reserved_bytes


def test_a_plan_is_the_sum_of_its_residents_requests_windows_and_processes():
    ledger, leaf = make_ledger(2000)

    ledger.admit(make_plan(leaf, make_stage("hear", 260, per_request=8, concurrency=3)))

    expected = COORDINATOR_BYTES + 90 * MIB + 260 * MIB + 24 * MIB + 3 * 8 * MIB
    assert reserved(ledger, "machine:quota") == expected
    assert reserved(ledger, "machine:physical") == expected


def test_of_the_load_peaks_only_the_largest_is_added():
    ledger, leaf = make_ledger(2000)
    stages = (make_stage("hear", 260, load_peak=320), make_stage("answer", 200, load_peak=300))

    ledger.admit(make_plan(leaf, *stages))

    standing = COORDINATOR_BYTES + (90 + 260 + 200) * MIB + 3 * WINDOW_BYTES
    assert reserved(ledger, "machine:quota") == standing + 100 * MIB


def test_a_load_may_use_what_is_kept_for_the_requests_of_its_stage():
    ledger, leaf = make_ledger(2000)

    ledger.admit(make_plan(leaf, make_stage("hear", 260, load_peak=320, per_request=40)))

    standing = COORDINATOR_BYTES + (90 + 260 + 40) * MIB + 3 * WINDOW_BYTES
    assert reserved(ledger, "machine:quota") == standing + 20 * MIB


def test_a_load_peak_below_the_resident_size_adds_nothing():
    _, leaf = make_ledger(2000)

    reservations = make_plan(leaf, make_stage("hear", 260, load_peak=100))

    assert all(item.lifetime is not Lifetime.LOAD for item in reservations)


def test_a_stage_that_states_no_memory_has_a_reservation_of_nothing():
    ledger, leaf = make_ledger(2000)
    ledger.admit(make_plan(leaf, make_stage("split", 0)))

    ledger.queue_load(stage_owner(StageId("split")), Incarnation(1))

    assert ledger.next_loads() == (stage_owner(StageId("split")),)


def test_a_plan_that_does_not_fit_changes_nothing_and_shows_the_arithmetic():
    ledger, leaf = make_ledger(775)
    before = ledger.snapshot()
    stages = (
        make_stage("hear", 260, load_peak=320, per_request=8),
        make_stage("answer", 300, load_peak=310),
    )

    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, *stages))

    # 96 + 90 + 260 + 8 + 300 + 24, and the larger of the excesses 60 - 8 and 10
    assert refusal.value.facts["constraint"] == "machine:quota"
    assert refusal.value.facts["needed_bytes"] == str(830 * MIB)
    assert refusal.value.facts["missing_bytes"] == str(55 * MIB)
    assert str(refusal.value).splitlines() == [
        "it needs 830.0 MiB under machine:quota, which allows 775.0 MiB: 55.0 MiB are missing",
        "  coordinator     resident    96.0 MiB  its own process",
        "  worker:cpu      resident    90.0 MiB  process and libraries",
        "  stage:hear      resident   260.0 MiB  weights and state",
        "  stage:hear      request      8.0 MiB  1 request(s) at once",
        "  stage:answer    resident   300.0 MiB  weights and state",
        "  transport:hear  transport   24.0 MiB  items under way, 3 request(s)",
        "  loads           load        52.0 MiB  largest load, stage:hear; one at a time",
        "  sum                        830.0 MiB",
        "  limit                      775.0 MiB  machine:quota",
        "  missing                     55.0 MiB",
        "smallest change that fits: raise --ram to 830MiB;"
        " or lower stages.answer.memory.resident by 55MiB, if it takes so much less",
    ]
    assert ledger.snapshot() == before


def test_what_is_held_already_is_part_of_the_arithmetic_and_not_asked_to_shrink():
    ledger, leaf = make_ledger(780)
    ledger.admit(make_plan(leaf, make_stage("hear", 400)))
    before = ledger.snapshot()

    with pytest.raises(ConstraintExceededError, match=r"stage:hear \(held\)") as refusal:
        ledger.admit(make_plan(leaf, make_stage("answer", 200))[2:3])

    assert "lower stages.answer.memory.resident by 30MiB, if it takes so much less" in str(
        refusal.value
    )
    assert ledger.snapshot() == before


def test_a_load_peak_that_is_enough_alone_is_named():
    ledger, leaf = make_ledger(600)
    stages = (make_stage("hear", 260, load_peak=460), make_stage("tiny", 10, load_peak=20))

    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, *stages))

    assert "lower stages.hear.memory.load_peak by 80MiB, if it takes so much less" in str(
        refusal.value
    )


def test_when_no_single_budget_is_enough_the_fewest_stages_are_named():
    ledger, leaf = make_ledger(400)
    stages = [make_stage(name, 150) for name in ("a", "b", "c")]

    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, *stages))

    assert "leave out stage:a and stage:b" in str(refusal.value)


def test_the_change_that_is_named_does_fit():
    stages = (make_stage("hear", 260, load_peak=320), make_stage("answer", 300))
    ledger, leaf = make_ledger(700)
    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, *stages))
    needed_mib = int(refusal.value.facts["needed_bytes"]) // MIB

    enough, leaf = make_ledger(needed_mib)
    enough.admit(make_plan(leaf, *stages))
    scarce, leaf = make_ledger(needed_mib - 1)

    with pytest.raises(ConstraintExceededError):
        scarce.admit(make_plan(leaf, *stages))


def test_every_exceeded_constraint_is_named_the_worst_first():
    ledger, leaf = make_ledger(quota_mib=300, physical_mib=320)

    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, make_stage("hear", 260)))

    assert refusal.value.facts["constraint"] == "machine:quota"
    assert "also exceeded: machine:physical by 150.0 MiB" in str(refusal.value)


def test_the_same_reservation_twice_is_a_mistake_that_changes_nothing():
    ledger, leaf = make_ledger(2000)
    plan = make_plan(leaf, make_stage("hear", 260))
    ledger.admit(plan)
    before = ledger.snapshot()

    with pytest.raises(ValueError, match="already"):
        ledger.admit(plan)

    assert ledger.snapshot() == before


def test_a_negative_reservation_cannot_be_made():
    with pytest.raises(ValueError, match="negative"):
        Reservation(
            stage_owner(StageId("a")), Lifetime.RESIDENT, -1, ConstraintId("x"), Owner("y"), ""
        )


def names_and_limits(limits: HostMemoryLimits) -> list[tuple[str, int]]:
    return [(item.constraint, item.limit_bytes) for item in host_constraints(limits)]


def test_without_a_quota_the_reserve_of_the_system_is_taken_off():
    limits = HostMemoryLimits(1000, available_bytes=900, cgroup_bytes=800, os_reserve_bytes=200)

    assert names_and_limits(limits) == [
        ("machine:physical", 1000),
        ("machine:ram", 800),
        ("machine:cgroup", 800),
        ("machine:available", 900),
    ]


def test_a_quota_is_what_the_plan_may_use_with_nothing_taken_off():
    limits = HostMemoryLimits(1000, available_bytes=950, os_reserve_bytes=200, quota_bytes=900)

    assert names_and_limits(limits) == [
        ("machine:physical", 1000),
        ("machine:available", 950),
        ("machine:quota", 900),
    ]


def test_of_unknown_memory_the_quota_alone_counts_as_an_estimate():
    (quota,) = host_constraints(HostMemoryLimits(None, quota_bytes=900))

    assert (quota.limit_bytes, quota.grade, quota.parent) == (900, Grade.E, None)


def test_unknown_memory_without_a_quota_is_refused():
    with pytest.raises(FieldInvalidError, match="--ram"):
        host_constraints(HostMemoryLimits(None))


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ([("a", None), ("a", None)], "twice"),
        ([("b", "a"), ("a", None)], "unknown"),
    ],
)
def test_a_tree_that_is_none_cannot_be_made(names: list[tuple[str, str | None]], complaint: str):
    constraints = [
        Constraint(
            ConstraintId(name),
            PoolId("p"),
            1,
            None if parent is None else ConstraintId(parent),
            Grade.D,
            "",
        )
        for name, parent in names
    ]

    with pytest.raises(ValueError, match=complaint):
        ConstraintTree(constraints)


def test_a_budget_is_not_to_be_lowered_by_more_than_may_be_too_much():
    ledger, leaf = make_ledger(400)
    with pytest.raises(ConstraintExceededError) as refusal:
        ledger.admit(make_plan(leaf, make_stage("hear", 300)))
    assert str(refusal.value).endswith("smallest change that fits: raise --ram to 510MiB")


def test_what_is_missing_by_less_than_is_shown_of_a_size_is_shown_in_bytes():
    ledger, leaf = make_ledger(510)
    stage = make_stage("hear", 300)
    with pytest.raises(ConstraintExceededError, match=r": 5 bytes are missing"):
        ledger.admit(make_plan(leaf, dataclasses.replace(stage, resident_bytes=300 * MIB + 5)))
