"""When a request is tried again, and after which time: the rules alone."""

import pytest

from stagewire.client.core.retrying import Attempts, Budget, check_replayable
from stagewire.errors import (
    CoordinatorUnreachableError,
    FieldInvalidError,
    LaneFullError,
    RequestDuplicateError,
    StageFaultError,
    WorkerLostError,
)
from stagewire.limits import ATTEMPTS

pytestmark = pytest.mark.unit

MIDDLE = 0.5


def delays(attempts, failure, seconds_left=None, chance=MIDDLE):
    given = []
    while (delay := attempts.fail(failure(), seconds_left, chance)) is not None:
        given.append(round(delay, 6))
    return given


def lost():
    return WorkerLostError("gone")


def test_delays_grow_by_themselves():
    assert delays(Attempts(Budget(), is_idempotent=True), lost) == [0.05, 0.1, 0.2]


def test_delays_grow_from_what_the_coordinator_asks_for():
    def full():
        return LaneFullError("full", retry_delay_ms=500)

    assert delays(Attempts(Budget(), is_idempotent=True), full) == [0.5, 1.0, 2.0]
    assert min(delays(Attempts(Budget(), is_idempotent=True), full, chance=0.0)) == 0.5


def test_a_delay_has_a_limit_unless_the_coordinator_asks_for_more():
    def asking(milliseconds):
        return lambda: LaneFullError("full", retry_delay_ms=milliseconds)

    assert delays(Attempts(Budget(), is_idempotent=True), asking(3000)) == [3.0, 5.0, 5.0]
    assert delays(Attempts(Budget(), is_idempotent=True), asking(9000)) == [9.0, 9.0, 9.0]


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 0.04), (1.0, 0.06)])
def test_chance_moves_a_delay_by_a_fifth(chance, delay):
    attempts = Attempts(Budget(), is_idempotent=True)
    assert attempts.fail(lost(), None, chance) == pytest.approx(delay)


def test_there_are_so_many_attempts_and_no_more():
    attempts = Attempts(Budget(), is_idempotent=True)
    delays(attempts, lost)
    assert attempts.number == ATTEMPTS


def test_a_request_that_may_not_run_twice_has_one_attempt():
    assert delays(Attempts(Budget(), is_idempotent=False), lost) == []


@pytest.mark.parametrize(
    "failure",
    [
        StageFaultError("failed on its input"),
        RequestDuplicateError("was answered"),
        ZeroDivisionError("of the caller"),
        None,
    ],
)
def test_what_no_other_attempt_mends_costs_nothing(failure):
    budget = Budget()
    assert Attempts(budget, is_idempotent=True).fail(failure, None, MIDDLE) is None
    assert budget == Budget()


def test_no_attempt_begins_after_the_time():
    attempts = Attempts(Budget(), is_idempotent=True)
    assert delays(attempts, lost, seconds_left=0.15) == [0.05, 0.1]


def test_failures_use_the_budget_up_and_successes_fill_it():
    budget = Budget()
    for _ in range(5):
        Attempts(budget, is_idempotent=False).fail(CoordinatorUnreachableError("no"), None, MIDDLE)
    assert not budget.allows_retry
    assert delays(Attempts(budget, is_idempotent=True), lost) == []

    for _ in range(11):
        budget.note_success()
    assert budget.allows_retry
    for _ in range(1000):
        budget.note_success()
    assert budget.tokens == Budget().tokens


def test_every_failure_without_budget_leaves_it_at_nothing():
    budget = Budget()
    for _ in range(100):
        budget.note_failure()
    assert budget.tokens == 0


@pytest.mark.parametrize("source", ["x", b"x", 1, ["x"], ("x",), range(3), {"x"}])
def test_what_can_be_read_again_is_taken(source):
    check_replayable("a", source)


async def test_an_iterator_is_refused_by_name():
    async def forever():
        yield "x"

    for source in (iter("x"), (text for text in "x"), forever()):
        with pytest.raises(FieldInvalidError, match="'a'"):
            check_replayable("a", source)
