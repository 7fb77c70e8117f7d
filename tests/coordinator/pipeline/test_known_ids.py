"""Request ids: once, unless the caller allows more and the attempt before failed."""

import pytest

from coordinator.facts.ids import RequestId
from coordinator.pipeline.known_ids import KnownIds
from stagewire.errors import RequestDuplicateError

pytestmark = pytest.mark.unit

MINE = RequestId("mine")


def refusal(ids, attempt, *, is_idempotent=True):
    with pytest.raises(RequestDuplicateError) as caught:
        ids.check(MINE, attempt, is_idempotent=is_idempotent)
    return caught.value


@pytest.fixture
def ids():
    return KnownIds()


def test_an_id_that_nobody_used_passes_with_any_attempt(ids):
    ids.check(MINE, 1, is_idempotent=False)
    # A coordinator that was started again knows of no earlier attempt.
    ids.check(MINE, 3, is_idempotent=True)


def test_a_failed_attempt_may_be_followed_by_a_higher_one(ids):
    ids.begin(MINE, 1)
    ids.end(MINE, has_failed=True)
    ids.check(MINE, 2, is_idempotent=True)


def test_the_same_or_a_lower_attempt_is_a_repetition(ids):
    ids.begin(MINE, 2)
    ids.end(MINE, has_failed=True)
    assert refusal(ids, 2).retry_delay_ms is None
    assert refusal(ids, 1).retry_delay_ms is None


def test_a_request_that_may_not_run_twice_does_not(ids):
    ids.begin(MINE, 1)
    ids.end(MINE, has_failed=True)
    assert refusal(ids, 2, is_idempotent=False).retry_delay_ms is None


def test_an_answered_request_is_not_run_again(ids):
    ids.begin(MINE, 1)
    ids.end(MINE, has_failed=False)
    assert refusal(ids, 2).retry_delay_ms is None


def test_an_attempt_that_is_running_is_to_be_waited_for(ids):
    ids.begin(MINE, 1)
    assert refusal(ids, 2).retry_delay_ms
    assert refusal(ids, 1).retry_delay_ms is None
    assert refusal(ids, 2, is_idempotent=False).retry_delay_ms is None


def test_each_attempt_is_compared_with_the_last(ids):
    for attempt in (1, 2):
        ids.check(MINE, attempt, is_idempotent=True)
        ids.begin(MINE, attempt)
        ids.end(MINE, has_failed=True)
    refusal(ids, 2)
    ids.check(MINE, 3, is_idempotent=True)
