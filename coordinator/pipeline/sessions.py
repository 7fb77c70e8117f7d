"""Sessions as leases: which are open, whose turn it is, when they run out. Pure.

A session belongs to one pipeline and to the lives of the workers that host its stages, because what
stages remember of it lies in those processes. Times are seconds of one clock, given by the caller.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from coordinator.facts.ids import PipelineId, RequestId, SessionId
from stagewire.errors import (
    FieldInvalidError,
    SessionBusyError,
    SessionLostError,
    SessionsFullError,
    SessionUnknownError,
    StageError,
)
from stagewire.limits import SESSION_LONGEST_SECONDS, SESSION_SECONDS, SESSIONS


class Life(Protocol):
    """One life of a worker."""

    fence_reason: StageError | None
    """Why it has ended; None while it goes on."""


LifeType = TypeVar("LifeType", bound=Life)


@dataclass(slots=True)
class Session(Generic[LifeType]):
    """An open session."""

    session_id: SessionId
    pipeline: PipelineId
    lease_seconds: float
    lives: tuple[LifeType, ...]
    expires_at: float
    request: RequestId | None = None
    """The request that runs in it now."""

    @property
    def is_lost(self) -> bool:
        """Whether a worker has ended that remembered something of it."""
        return any(life.fence_reason is not None for life in self.lives)


class Sessions(Generic[LifeType]):
    """The sessions of one coordinator."""

    def __init__(self, most: int = SESSIONS) -> None:
        self._most = most
        self._open: dict[SessionId, Session[LifeType]] = {}

    def __len__(self) -> int:
        """Returns how many are open."""
        return len(self._open)

    def __iter__(self) -> Iterator[Session[LifeType]]:
        """Iterates over what is open."""
        return iter(self._open.values())

    def open(
        self,
        session_id: SessionId,
        pipeline: PipelineId,
        lives: tuple[LifeType, ...],
        lease_seconds: float,
        now: float,
    ) -> Session[LifeType]:
        """Opens a session.

        Raises:
            SessionsFullError: as many are open as may be.
        """
        if len(self._open) >= self._most:
            raise SessionsFullError(
                f"{self._most} sessions are open, the most that may be; close one, or wait until"
                " the lease of one runs out"
            )
        session = Session(session_id, pipeline, lease_seconds, lives, now + lease_seconds)
        self._open[session_id] = session
        return session

    def find(self, session_id: str) -> Session[LifeType]:
        """Returns a session that can be used.

        Raises:
            SessionUnknownError: it was closed, has run out, or never was.
            SessionLostError: a worker that remembered something of it was lost.
        """
        session = self._open.get(SessionId(session_id))
        if session is None:
            raise SessionUnknownError(
                "there is no session of that id: it was closed, its lease ran out, or the"
                " coordinator was started again; open a new one"
            )
        if session.is_lost:
            raise SessionLostError(
                "a worker that kept the state of the session was lost; open a new session, which"
                " begins without it",
                session=session_id,
            )
        return session

    def check_turn(self, session: Session[LifeType], pipeline: PipelineId) -> None:
        """Checks that a request may run in a session now.

        Raises:
            FieldInvalidError: the session belongs to another pipeline.
            SessionBusyError: another request of it is running.
        """
        if session.pipeline != pipeline:
            raise FieldInvalidError(
                f"the session belongs to the pipeline {session.pipeline!r}, not {pipeline!r}",
                session=session.session_id,
            )
        if session.request is not None:
            raise SessionBusyError(
                f"request {session.request!r} of the session is running; a session runs one at a"
                " time",
                session=session.session_id,
                id=session.request,
            )

    def begin(self, session: Session[LifeType], request: RequestId) -> None:
        """Gives a session to a request; its lease does not run out meanwhile."""
        session.request = request
        session.expires_at = math.inf

    def end(self, session: Session[LifeType], now: float) -> None:
        """Takes a session back from its request; its lease begins anew."""
        session.request = None
        session.expires_at = now + session.lease_seconds

    def renew(self, session_id: str, now: float) -> Session[LifeType]:
        """Begins the lease of a session anew.

        Raises:
            SessionUnknownError: there is none.
            SessionLostError: a worker that remembered something of it was lost.
        """
        session = self.find(session_id)
        if session.request is None:
            session.expires_at = now + session.lease_seconds
        return session

    def close(self, session_id: str) -> Session[LifeType]:
        """Ends a session, lost or not; returns it, so that its request and state can be ended.

        Raises:
            SessionUnknownError: there is none.
        """
        session = self._open.pop(SessionId(session_id), None)
        if session is None:
            raise SessionUnknownError("there is no session of that id, or no longer")
        return session

    def take_expired(self, now: float) -> list[Session[LifeType]]:
        """Ends the sessions whose lease has run out, and returns them."""
        expired = [session for session in self if session.expires_at <= now]
        for session in expired:
            del self._open[session.session_id]
        return expired

    @property
    def next_expiry(self) -> float:
        """When the next lease runs out; infinite when none does."""
        return min((session.expires_at for session in self), default=math.inf)


def check_lease(seconds: float | None) -> float:
    """Returns the lease that a caller gets for the time that it asked for, or for none.

    Raises:
        FieldInvalidError: it is no time, or longer than a lease may be.
    """
    if seconds is None:
        return SESSION_SECONDS
    if not 0 < seconds <= SESSION_LONGEST_SECONDS:
        raise FieldInvalidError(
            f"idle_timeout is {seconds:g} s; it must be above 0 and at most"
            f" {SESSION_LONGEST_SECONDS:g} s",
            field="idle_timeout",
        )
    return seconds
