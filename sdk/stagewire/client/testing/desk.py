"""What a fake coordinator admits: pipelines, request ids, sessions, and what a test scripted."""

import secrets
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stagewire.client.testing.pipelines import FakePipeline
from stagewire.client.testing.request import FakeRequest, Scripted, opened
from stagewire.errors import (
    CancelledError,
    FieldInvalidError,
    PipelineUnknownError,
    RequestDuplicateError,
    SessionBusyError,
    SessionUnknownError,
    StageError,
)
from stagewire.limits import SESSION_LONGEST_SECONDS, SESSION_SECONDS
from stagewire.v1 import coordinator_pb2 as pb

_LOOK_SECONDS: Final = 0.02
"""Time between two looks whether a held request was cancelled."""


class Hold:
    """Keeps requests of a pipeline from running until it is released."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        """Set when a request has arrived."""
        self.released = threading.Event()

    def release(self) -> None:
        """Lets every request go on."""
        self.released.set()

    def keep(self, request: FakeRequest) -> None:
        """Waits in the thread of a request.

        Raises:
            CancelledError: its caller has gone meanwhile.
        """
        self.arrived.set()
        while not self.released.wait(_LOOK_SECONDS):
            if request.cancelled.is_set():
                raise CancelledError("the caller went away")

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass
class Session:
    """An open session of a fake coordinator."""

    pipeline: str
    lease_seconds: float
    state: dict[str, Any] = field(default_factory=dict)
    is_busy: bool = False
    failure: StageError | None = None
    """How everything that is asked of it fails, when a test ended it."""


@dataclass
class Admitted:
    """A request that may run."""

    request: FakeRequest
    pipeline: FakePipeline
    scripted: Scripted | None
    hold: Hold | None


class Desk:
    """Answers from any thread."""

    def __init__(self, pipelines: Mapping[str, FakePipeline]) -> None:
        self.pipelines = pipelines
        self.requests: list[FakeRequest] = []
        self.scripts: dict[str, deque[Scripted]] = {name: deque() for name in pipelines}
        self.holds: dict[str, Hold] = {}
        self.sessions: dict[str, Session] = {}
        self._attempts: dict[str, tuple[int, str]] = {}
        """Last attempt of each request and whether it `runs`, has `failed` or was `answered`."""
        self._lock = threading.Lock()

    def admit(self, opening: pb.InferOpen) -> Admitted:
        """Admits a request.

        Raises:
            StageError: it is refused, or a test has said that it fails at once.
        """
        with self._lock:
            pipeline = self.pipeline(opening.pipeline)
            self._check_id(opening)
            session = self._session_of(opening)
            request_id = opening.request_id or f"r-{secrets.token_hex(8)}"
            request = opened(opening, request_id, None if session is None else session.state)
            self.requests.append(request)
            script = self.scripts[opening.pipeline]
            scripted = script.popleft() if script else None
            is_refused = scripted is not None and not scripted.after_outputs
            self._attempts[request_id] = (request.attempt, "failed" if is_refused else "runs")
            if scripted is not None and is_refused:
                raise scripted.failure
            if session is not None:
                session.is_busy = True
            return Admitted(request, pipeline, scripted, self.holds.get(opening.pipeline))

    def settle(self, admitted: Admitted, *, has_failed: bool) -> None:
        """Notes the end of a request."""
        request = admitted.request
        with self._lock:
            outcome = "failed" if has_failed else "answered"
            self._attempts[request.request_id] = (request.attempt, outcome)
            session = self.sessions.get(request.session_id)
            if session is not None:
                session.is_busy = False

    def pipeline(self, name: str) -> FakePipeline:
        """Returns a pipeline.

        Raises:
            PipelineUnknownError: there is none of that name.
        """
        if name not in self.pipelines:
            raise PipelineUnknownError(
                f"there is no pipeline of that name; there is {', '.join(self.pipelines)}"
            )
        return self.pipelines[name]

    def open_session(self, pipeline: str, seconds: float | None) -> tuple[str, Session]:
        """Opens a session, which does not end by itself."""
        with self._lock:
            self.pipeline(pipeline)
            lease = SESSION_SECONDS if seconds is None else seconds
            if not 0 < lease <= SESSION_LONGEST_SECONDS:
                raise FieldInvalidError(f"idle_timeout is {lease:g} s", field="idle_timeout")
            session_id = f"s-{secrets.token_hex(16)}"
            self.sessions[session_id] = Session(pipeline, lease)
            return session_id, self.sessions[session_id]

    def session(self, session_id: str) -> Session:
        """Returns an open session.

        Raises:
            StageError: there is none, or a test has ended it.
        """
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionUnknownError("there is no session of that id; open a new one")
        if session.failure is not None:
            raise session.failure
        return session

    def close_session(self, session_id: str) -> None:
        """Ends a session."""
        with self._lock:
            if self.sessions.pop(session_id, None) is None:
                raise SessionUnknownError("there is no session of that id, or no longer")

    def _check_id(self, opening: pb.InferOpen) -> None:
        number, state = self._attempts.get(opening.request_id, (0, "failed"))
        is_next = opening.idempotent and opening.attempt > number
        if number and not (is_next and state == "failed"):
            raise RequestDuplicateError(
                f"request {opening.request_id!r} was sent before", id=opening.request_id
            )

    def _session_of(self, opening: pb.InferOpen) -> Session | None:
        if not opening.session_id:
            return None
        session = self.session(opening.session_id)
        if session.pipeline != opening.pipeline:
            raise FieldInvalidError(f"the session belongs to the pipeline {session.pipeline!r}")
        if session.is_busy:
            raise SessionBusyError("another request of the session is running")
        return session
