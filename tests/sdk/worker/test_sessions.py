"""What stages keep for sessions: until it is replaced, the session ends, or the stage does."""

import logging

import pytest

from stagewire.errors import StageFaultError
from stagewire.limits import SESSION_STATE_BYTES
from stagewire.worker.sessions import SessionStates

pytestmark = pytest.mark.unit


@pytest.fixture
def states():
    return SessionStates()


@pytest.fixture
def closed():
    return []


def keep(session, state, closed, size_bytes=1):
    session.keep(state, size_bytes=size_bytes, close=lambda: closed.append(state))


def test_a_state_is_there_the_next_time(states, closed):
    assert states.of("one", "s").state is None
    keep(states.of("one", "s"), "turns", closed)
    assert states.of("one", "s").state == "turns"
    assert closed == []


def test_states_of_stages_and_sessions_are_apart(states, closed):
    keep(states.of("one", "s"), "turns", closed)
    assert states.of("two", "s").state is None
    assert states.of("one", "t").state is None


def test_a_request_without_a_session_has_none(states):
    assert states.of("one", "") is None


def test_a_state_that_is_replaced_is_closed_and_one_that_stays_is_not(states, closed):
    session = states.of("one", "s")
    first = ["a"]
    keep(session, first, closed)
    keep(session, first, closed)
    assert closed == []
    keep(session, ["b"], closed)
    assert closed == [["a"]]


def test_a_session_that_ends_is_freed_in_every_stage(states, closed):
    keep(states.of("one", "s"), 1, closed)
    keep(states.of("two", "s"), 2, closed)
    keep(states.of("one", "t"), 3, closed)
    states.of("three", "s")

    assert states.release_session("s") == 2

    assert sorted(closed) == [1, 2]
    assert states.release_session("s") == 0
    assert states.of("one", "t").state == 3


def test_a_stage_that_is_released_frees_every_session(states, closed):
    keep(states.of("one", "s"), 1, closed)
    keep(states.of("one", "t"), 2, closed)
    keep(states.of("two", "s"), 3, closed)

    assert states.release_stage("one") == 2

    assert sorted(closed) == [1, 2]


def test_the_end_of_the_worker_frees_everything(states, closed):
    keep(states.of("one", "s"), 1, closed)
    keep(states.of("two", "t"), 2, closed)
    assert states.release_all() == 2
    assert sorted(closed) == [1, 2]


def test_what_is_kept_after_the_session_has_ended_is_freed_at_once(states, closed):
    session = states.of("one", "s")
    states.release_session("s")
    keep(session, "late", closed)
    assert closed == ["late"]
    assert session.state is None


def test_a_state_over_the_limit_is_refused_and_the_one_before_stays(states, closed):
    session = states.of("one", "s")
    keep(session, "small", closed, SESSION_STATE_BYTES)
    with pytest.raises(StageFaultError, match=str(SESSION_STATE_BYTES)):
        keep(session, "large", closed, SESSION_STATE_BYTES + 1)
    assert session.state == "small"
    assert closed == []


def test_a_state_that_cannot_be_closed_keeps_no_other_from_being_freed(states, closed, caplog):
    def fail():
        raise OSError("no")

    states.of("one", "s").keep("bad", size_bytes=1, close=fail)
    keep(states.of("two", "s"), "good", closed)
    with caplog.at_level(logging.ERROR):
        assert states.release_session("s") == 2
    assert closed == ["good"]
    assert "could not be closed" in caplog.text
