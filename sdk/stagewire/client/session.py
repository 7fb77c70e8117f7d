"""A session of the blocking client: requests whose stages remember those before."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from stagewire.client.call import Call
from stagewire.client.core.requests import Order, Source
from stagewire.client.given import Given
from stagewire.client.line import Line
from stagewire.client.result import Result
from stagewire.client.session_terms import SessionTerms
from stagewire.errors import CoordinatorUnreachableError, SessionUnknownError
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_seconds


class Session(SessionTerms):
    """An open session of one pipeline: a context manager that closes it at the end of the block.

    Its requests run one at a time, and each begins its lease anew. It is lost with any worker that
    remembers something of it.
    """

    _entering = "with client.session(...) as session:"

    def __init__(
        self,
        line: Line,
        pipeline: str,
        idle_timeout: float | None,
        *,
        run: Callable[[Order, Mapping[str, Given], float | None], Result],
        infer: Callable[[Order, Mapping[str, Source], float | None], Call],
    ) -> None:
        super().__init__(pipeline, idle_timeout)
        self._line = line
        self._run = run
        self._infer = infer

    def __enter__(self) -> "Session":
        self._opened = self._line.unary("open_session", self._opening(), None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        inputs: Mapping[str, Given],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Result:
        """Runs the pipeline as `Client.run` does, within the session.

        Raises:
            SessionUnknownError: the session was closed, or its lease ran out.
            SessionLostError: a worker that remembered something of it was lost.
            SessionBusyError: another request of it is running.
            StageError: as `Client.run`.
        """
        return self._run(self._order(request_id, outputs, idempotent), inputs, timeout)

    def infer(
        self,
        inputs: Mapping[str, Source] | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Call:
        """Returns a call as `Client.infer` does, within the session."""
        return self._infer(self._order(request_id, outputs, idempotent), inputs or {}, timeout)

    def renew(self) -> float:
        """Begins the lease anew; returns its seconds.

        Raises:
            SessionUnknownError: the session was closed, or its lease ran out.
            SessionLostError: a worker that remembered something of it was lost.
        """
        request = pb.RenewSessionRequest(session_id=self.session_id)
        answer: pb.RenewSessionResponse = self._line.unary("renew_session", request, None)
        return to_seconds(answer.lease)

    def close(self) -> None:
        """Ends the session and a request of it that runs; the stages forget it."""
        request = pb.CloseSessionRequest(session_id=self.session_id)
        # Either it has ended already, or its lease ends it.
        with contextlib.suppress(SessionUnknownError, CoordinatorUnreachableError):
            self._line.unary("close_session", request, None)
