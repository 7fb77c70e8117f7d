"""Sessions as leases: turns, times, loss and limits, by a clock of the test."""

from dataclasses import dataclass

import pytest

from coordinator.facts.ids import PipelineId, RequestId, SessionId
from coordinator.pipeline.sessions import Sessions, check_lease
from stagewire.errors import (
    FieldInvalidError,
    SessionBusyError,
    SessionLostError,
    SessionsFullError,
    SessionUnknownError,
    WorkerLostError,
)
from stagewire.limits import SESSION_LONGEST_SECONDS, SESSION_SECONDS, SESSIONS

pytestmark = pytest.mark.unit

MINE = SessionId("s-1")
CHAT = PipelineId("chat")
REQUEST = RequestId("r-1")


@dataclass
class Life:
    fence_reason: WorkerLostError | None = None


@pytest.fixture
def sessions():
    return Sessions()


@pytest.fixture
def life():
    return Life()


@pytest.fixture
def session(sessions, life):
    return sessions.open(MINE, CHAT, (life, Life()), 10.0, now=100.0)


def test_an_open_session_is_found_and_ends_with_its_lease(sessions, session):
    assert sessions.find(MINE) is session
    assert sessions.next_expiry == 110.0
    assert sessions.take_expired(109.9) == []
    assert sessions.take_expired(110.0) == [session]
    with pytest.raises(SessionUnknownError):
        sessions.find(MINE)


def test_renewing_begins_the_lease_anew(sessions, session):
    assert sessions.renew(MINE, now=105.0) is session
    assert sessions.take_expired(114.9) == []
    assert sessions.take_expired(115.0) == [session]


def test_a_running_request_keeps_its_session_and_renews_it(sessions, session):
    sessions.begin(session, REQUEST)
    sessions.renew(MINE, now=101.0)
    assert sessions.take_expired(1_000_000.0) == []

    sessions.end(session, now=500.0)

    assert sessions.next_expiry == 510.0


def test_requests_of_a_session_run_one_at_a_time(sessions, session):
    sessions.check_turn(session, CHAT)
    sessions.begin(session, REQUEST)
    with pytest.raises(SessionBusyError, match="r-1"):
        sessions.check_turn(session, CHAT)
    sessions.end(session, now=101.0)
    sessions.check_turn(session, CHAT)


def test_a_session_belongs_to_its_pipeline(sessions, session):
    with pytest.raises(FieldInvalidError, match="'chat', not 'other'"):
        sessions.check_turn(session, PipelineId("other"))


def test_a_session_is_lost_with_any_of_its_workers(sessions, session, life):
    life.fence_reason = WorkerLostError("gone")
    for use in (lambda: sessions.find(MINE), lambda: sessions.renew(MINE, now=101.0)):
        with pytest.raises(SessionLostError, match="open a new session"):
            use()
    assert sessions.take_expired(110.0) == [session]


def test_a_lost_session_can_be_closed(sessions, session, life):
    life.fence_reason = WorkerLostError("gone")
    assert sessions.close(MINE) is session


def test_a_closed_session_is_unknown(sessions, session):
    assert sessions.close(MINE) is session
    for use in (sessions.find, sessions.close):
        with pytest.raises(SessionUnknownError):
            use(MINE)


def test_only_so_many_sessions_are_open(sessions, life):
    for number in range(SESSIONS):
        sessions.open(SessionId(f"s-{number}"), CHAT, (life,), 10.0, now=float(number))
    with pytest.raises(SessionsFullError):
        sessions.open(SessionId("s-more"), CHAT, (life,), 10.0, now=100.0)
    assert len(sessions.take_expired(10.0)) == 1
    sessions.open(SessionId("s-more"), CHAT, (life,), 10.0, now=100.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, SESSION_LONGEST_SECONDS + 1, float("nan")])
def test_a_lease_has_limits(seconds):
    with pytest.raises(FieldInvalidError, match="idle_timeout"):
        check_lease(seconds)


def test_a_lease_is_what_was_asked_for_or_the_usual_one():
    assert check_lease(1.5) == 1.5
    assert check_lease(SESSION_LONGEST_SECONDS) == SESSION_LONGEST_SECONDS
    assert check_lease(None) == SESSION_SECONDS
