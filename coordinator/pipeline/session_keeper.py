"""Carries out what sessions decide: clocks their leases, and tells workers to drop their state."""

import asyncio
import math
import secrets
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from coordinator.facts.ids import PipelineId, RequestId, SessionId, StageId
from coordinator.gateway.incarnation import Attached
from coordinator.pipeline.hosted_stage import HostedStage
from coordinator.pipeline.request import RunningRequest
from coordinator.pipeline.sessions import Session, Sessions, check_lease
from stagewire.errors import CancelledError, StageError

_CANCEL_SECONDS: Final = 0.5
"""Time in which a cancel arrives that was sent before another request."""


class Hosts(Protocol):
    """Where the stages are at the moment."""

    def host_of(self, stage: StageId) -> HostedStage:
        """Returns the host of a ready stage.

        Raises:
            StageError: the stage is starting, failed or was never placed.
        """


class SessionKeeper:
    """The sessions of one coordinator, on its loop. `running` are the requests that hold any."""

    def __init__(self, hosts: Hosts, running: Mapping[RequestId, RunningRequest]) -> None:
        self._hosts = hosts
        self._running = running
        self._sessions: Sessions[Attached] = Sessions()
        self._timer: asyncio.TimerHandle | None = None
        self._releases: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._sessions)

    def open(
        self, pipeline: PipelineId, stages: Iterable[StageId], idle_seconds: float | None
    ) -> Session[Attached]:
        """Opens a session of a pipeline whose stages are ready.

        Raises:
            StageError: one is not ready, too many sessions are open, or the time is none.
        """
        lease = check_lease(idle_seconds)
        lives = {id(life): life for life in (self._hosts.host_of(s).attached for s in stages)}
        session = self._sessions.open(
            SessionId(f"s-{secrets.token_hex(16)}"),
            pipeline,
            tuple(lives.values()),
            lease,
            self._now(),
        )
        self._set_timer()
        return session

    def renew(self, session_id: str) -> Session[Attached]:
        """Begins the lease of a session anew.

        Raises:
            StageError: there is none, or its state was lost.
        """
        session = self._sessions.renew(session_id, self._now())
        self._set_timer()
        return session

    async def close(self, session_id: str) -> None:
        """Ends a session and its request; returns when no worker holds anything of it.

        Raises:
            SessionUnknownError: there is none.
        """
        # Goes on when the caller no longer waits: what has begun to end must not stay.
        await asyncio.shield(self._release(self._sessions.close(session_id)))

    async def wait_for_turn(self, session_id: str) -> None:
        """Waits while the request before is ending in a session.

        Workers may still let go of one that has failed, and of one that its caller has cancelled
        the coordinator may not know yet: the cancel and the next request come by different streams.
        """
        holder = next((item for item in self._sessions if item.session_id == session_id), None)
        request = self._running.get(holder.request) if holder and holder.request else None
        if request is None:
            return
        if request.clock.ended is None:
            await asyncio.wait({request.settled}, timeout=_CANCEL_SECONDS)
        if request.clock.ended is not None:
            await asyncio.wait({request.settled})

    def find(self, session_id: str, pipeline: PipelineId) -> Session[Attached] | None:
        """Returns the session that a request may run in now; None for an empty id.

        Raises:
            StageError: it is unknown, lost, busy, or of another pipeline.
        """
        if not session_id:
            return None
        session = self._sessions.find(session_id)
        self._sessions.check_turn(session, pipeline)
        return session

    def begin(self, session: Session[Attached], request: RunningRequest) -> None:
        """Gives a session to a request, until that has settled."""
        self._sessions.begin(session, request.request_id)
        request.settled.add_done_callback(lambda _: self._end(session))

    def _end(self, session: Session[Attached]) -> None:
        self._sessions.end(session, self._now())
        self._set_timer()

    # --- what ends ---

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        moment = self._sessions.next_expiry
        if moment < math.inf:
            self._timer = asyncio.get_running_loop().call_at(moment, self._expire)

    def _expire(self) -> None:
        for session in self._sessions.take_expired(self._now()):
            self._release(session)
        self._set_timer()

    def _release(self, session: Session[Attached]) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._end_everywhere(session))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)
        return task

    async def _end_everywhere(self, session: Session[Attached]) -> None:
        request = self._running.get(session.request) if session.request is not None else None
        if request is not None:
            request.fail(CancelledError("the session of the request was closed"))
            await request.settled
        await asyncio.gather(*(_end_in(life, session.session_id) for life in session.lives))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def _end_in(life: Attached, session_id: SessionId) -> None:
    try:
        await life.release_session(session_id)
    except StageError:
        # The worker has ended, and what it remembered with it.
        return
