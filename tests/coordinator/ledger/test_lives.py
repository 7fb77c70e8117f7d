import pytest

from coordinator.facts.ids import ConstraintId, Incarnation
from coordinator.ledger.budgets import BudgetKind
from coordinator.ledger.constraints import HostMemoryLimits, host_constraints
from coordinator.ledger.ledger import Ledger
from coordinator.ledger.reservation import Lifetime, Owner, Reservation
from coordinator.ledger.snapshot import ClaimState
from coordinator.ledger.turnstile import PendingLoad, loads_that_may_begin
from stagewire.errors import ConstraintExceededError, InternalFaultError, MemoryBusyError

pytestmark = pytest.mark.unit

LEAF = ConstraintId("machine:quota")
FIRST, SECOND = Incarnation(1), Incarnation(2)
WORKER = Owner("worker:cpu")
HEAR, ANSWER, SPEAK = Owner("stage:hear"), Owner("stage:answer"), Owner("stage:speak")


def make_claim(owner: Owner, lifetime: Lifetime, size_bytes: int) -> Reservation:
    return Reservation(owner, lifetime, size_bytes, LEAF, WORKER, "test")


def make_ledger(limit: int = 1000) -> Ledger:
    return Ledger(host_constraints(HostMemoryLimits(4000, quota_bytes=limit)))


def make_loaded_ledger(limit: int = 1000) -> Ledger:
    """One worker of 100, and three stages of 200 whose loads take 100, 80 and 60 more."""
    ledger = make_ledger(limit)
    claims = [make_claim(WORKER, Lifetime.RESIDENT, 100)]
    for owner, excess in ((HEAR, 100), (ANSWER, 80), (SPEAK, 60)):
        claims.append(make_claim(owner, Lifetime.RESIDENT, 200))
        claims.append(make_claim(owner, Lifetime.LOAD, excess))
    ledger.admit(claims)
    return ledger


def state_of(ledger: Ledger, owner: Owner) -> ClaimState:
    lines = ledger.snapshot().reservations
    return next(line.state for line in lines if line.reservation.owner == owner)


def test_nothing_loads_without_a_reservation():
    ledger = make_ledger()

    with pytest.raises(InternalFaultError, match="no reservation"):
        ledger.queue_load(HEAR, FIRST)


def test_in_a_tight_pool_loads_go_one_after_the_other():
    ledger = make_loaded_ledger(limit=800)
    for owner in (HEAR, ANSWER, SPEAK):
        ledger.queue_load(owner, FIRST)

    order = []
    while turns := ledger.next_loads():
        order.append(turns)
        ledger.begin_load(turns[0])
        assert ledger.next_loads() == ()
        ledger.end_load(turns[0])

    assert order == [(HEAR,), (ANSWER,), (SPEAK,)]


def test_where_there_is_room_loads_run_together():
    ledger = make_loaded_ledger(limit=880)
    for owner in (HEAR, ANSWER, SPEAK):
        ledger.queue_load(owner, FIRST)

    assert ledger.next_loads() == (HEAR, ANSWER)
    ledger.begin_load(HEAR)
    assert ledger.next_loads() == (ANSWER,)
    with pytest.raises(MemoryBusyError):
        ledger.begin_load(SPEAK)


def test_a_load_that_does_not_fit_holds_back_the_smaller_ones_behind_it():
    waiting = [PendingLoad(HEAR, {LEAF: 100}), PendingLoad(ANSWER, {LEAF: 10})]

    assert loads_that_may_begin(waiting, {LEAF: 99}) == ()
    assert loads_that_may_begin(waiting, {LEAF: 100}) == (HEAR,)
    assert loads_that_may_begin(waiting, {LEAF: 110}) == (HEAR, ANSWER)


def test_a_load_that_failed_makes_room_for_the_next():
    ledger = make_loaded_ledger(limit=800)
    ledger.queue_load(HEAR, FIRST)
    ledger.queue_load(ANSWER, FIRST)
    ledger.begin_load(HEAR)

    ledger.end_load(HEAR)

    assert ledger.next_loads() == (ANSWER,)


def test_queueing_twice_is_queueing_once():
    ledger = make_loaded_ledger()
    ledger.queue_load(HEAR, FIRST)
    ledger.queue_load(HEAR, FIRST)

    assert ledger.snapshot().waiting == (HEAR,)


def test_what_a_running_load_uses_is_not_given_to_a_new_reservation():
    ledger = make_loaded_ledger(limit=880)
    ledger.queue_load(HEAR, FIRST)
    ledger.queue_load(ANSWER, FIRST)
    ledger.begin_load(HEAR)
    ledger.begin_load(ANSWER)

    with pytest.raises(ConstraintExceededError):
        ledger.admit([make_claim(Owner("stage:new"), Lifetime.RESIDENT, 1)])
    ledger.end_load(HEAR)
    ledger.admit([make_claim(Owner("stage:new"), Lifetime.RESIDENT, 1)])


def test_claims_of_a_lost_worker_stay_until_it_is_proven_gone():
    ledger = make_loaded_ledger()
    baseline = ledger.snapshot()
    ledger.occupy(WORKER, FIRST)
    ledger.queue_load(HEAR, FIRST)
    ledger.begin_load(HEAR)
    ledger.queue_load(ANSWER, FIRST)

    ledger.quarantine(FIRST)

    assert state_of(ledger, HEAR) is ClaimState.QUARANTINED
    assert state_of(ledger, SPEAK) is ClaimState.PROMISED
    assert ledger.snapshot().waiting == ()
    assert ledger.snapshot().loading == (HEAR,)
    for incarnation in (FIRST, SECOND):
        with pytest.raises(MemoryBusyError, match=r"proven gone|is lost"):
            ledger.occupy(WORKER, incarnation)
    ledger.settle(FIRST)
    assert ledger.snapshot() == baseline
    ledger.occupy(WORKER, SECOND)


def test_a_released_claim_comes_back_only_when_its_process_is_gone():
    ledger = make_loaded_ledger()
    ledger.queue_load(HEAR, FIRST)
    before = ledger.snapshot().constraints

    ledger.release(HEAR)

    assert ledger.snapshot().constraints == before
    assert ledger.next_loads() == ()
    with pytest.raises(MemoryBusyError):
        ledger.admit([make_claim(HEAR, Lifetime.REQUEST, 1)])
    ledger.settle(FIRST)
    assert all(line.reservation.owner != HEAR for line in ledger.snapshot().reservations)


def test_a_living_worker_can_give_back_one_stage():
    ledger = make_loaded_ledger()
    ledger.occupy(WORKER, FIRST)
    ledger.occupy(HEAR, FIRST)
    ledger.release(HEAR)

    ledger.vacate(HEAR, FIRST)

    assert state_of(ledger, WORKER) is ClaimState.OCCUPIED
    assert all(line.reservation.owner != HEAR for line in ledger.snapshot().reservations)


def test_a_late_word_of_an_older_life_changes_nothing():
    ledger = make_loaded_ledger()
    ledger.occupy(HEAR, SECOND)
    before = ledger.snapshot()

    ledger.vacate(HEAR, FIRST)
    ledger.quarantine(FIRST)
    ledger.settle(FIRST)

    assert ledger.snapshot() == before


def test_a_budget_below_its_measurement_is_a_failed_budget():
    ledger = make_loaded_ledger()
    ledger.occupy(WORKER, FIRST)
    ledger.measure(HEAR, 200)
    ledger.measure(WORKER, 700, peak_bytes=800)
    assert ledger.failed_budgets() == ()

    ledger.measure(HEAR, 201)
    ledger.measure(WORKER, 701, peak_bytes=801)

    found = {
        (item.owner, item.kind): item.measured_bytes - item.budget_bytes
        for item in ledger.failed_budgets()
    }
    assert found == {
        (HEAR, BudgetKind.RESIDENT): 1,
        (WORKER, BudgetKind.RESIDENT): 1,
        (WORKER, BudgetKind.PEAK): 1,
    }
    assert str(ledger.failed_budgets()[0]).startswith("stage:hear: resident budget 200 B, measured")


def test_while_a_stage_loads_its_peak_is_allowed_to_the_process():
    ledger = make_loaded_ledger()
    ledger.queue_load(HEAR, FIRST)
    ledger.begin_load(HEAR)
    ledger.measure(WORKER, 800)
    ledger.measure(HEAR, 300)
    assert ledger.failed_budgets() == ()

    ledger.end_load(HEAR)

    assert {item.owner for item in ledger.failed_budgets()} == {HEAR, WORKER}


def test_a_peak_is_remembered_after_the_process_is_gone():
    ledger = make_loaded_ledger()
    ledger.occupy(WORKER, FIRST)
    ledger.measure(WORKER, 900)

    ledger.settle(FIRST)

    assert [item.kind for item in ledger.failed_budgets()] == [BudgetKind.PEAK]
