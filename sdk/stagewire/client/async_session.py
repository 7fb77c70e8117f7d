"""A session of the asynchronous client: requests whose stages remember those before."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType

from stagewire.client.async_call import AsyncCall
from stagewire.client.async_line import AsyncLine
from stagewire.client.core.requests import AsyncSource, Order
from stagewire.client.given import Given, check_seconds
from stagewire.client.orders import make_order
from stagewire.client.result import Result
from stagewire.errors import CoordinatorUnreachableError, SessionUnknownError
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds


class AsyncSession:
    """An open session of one pipeline, which is closed at the end of its `async with`.

    Its requests run one at a time, and each begins its lease anew. It is lost with any worker that
    remembers something of it.
    """

    def __init__(
        self,
        line: AsyncLine,
        pipeline: str,
        idle_timeout: float | None,
        *,
        run: Callable[[Order, Mapping[str, Given], float | None], Awaitable[Result]],
        infer: Callable[[Order, Mapping[str, AsyncSource], float | None], AsyncCall],
    ) -> None:
        self.pipeline = pipeline
        self._line = line
        self._idle_timeout = check_seconds("idle_timeout", idle_timeout)
        self._run = run
        self._infer = infer
        self._opened: pb.OpenSessionResponse | None = None

    async def __aenter__(self) -> "AsyncSession":
        if self._opened is not None:
            raise RuntimeError("a session is entered once; ask the client for another")
        seconds = self._idle_timeout
        idle = None if seconds is None else to_duration(seconds)
        request = pb.OpenSessionRequest(pipeline=self.pipeline, idle_timeout=idle)
        self._opened = await self._line.unary("open_session", request, None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def session_id(self) -> str:
        """Id that the coordinator gave it."""
        return self._entered().session_id

    @property
    def lease_seconds(self) -> float:
        """Time without a request or `renew` after which it ends by itself."""
        return to_seconds(self._entered().lease)

    async def run(
        self,
        inputs: Mapping[str, Given],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Result:
        """Runs the pipeline as `AsyncClient.run` does, within the session.

        Raises:
            SessionUnknownError: the session was closed, or its lease ran out.
            SessionLostError: a worker that remembered something of it was lost.
            SessionBusyError: another request of it is running.
            StageError: as `AsyncClient.run`.
        """
        return await self._run(self._order(request_id, outputs, idempotent), inputs, timeout)

    def infer(
        self,
        inputs: Mapping[str, AsyncSource] | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> AsyncCall:
        """Returns a call as `AsyncClient.infer` does, within the session."""
        return self._infer(self._order(request_id, outputs, idempotent), inputs or {}, timeout)

    async def renew(self) -> float:
        """Begins the lease anew; returns its seconds.

        Raises:
            SessionUnknownError: the session was closed, or its lease ran out.
            SessionLostError: a worker that remembered something of it was lost.
        """
        request = pb.RenewSessionRequest(session_id=self.session_id)
        answer: pb.RenewSessionResponse = await self._line.unary("renew_session", request, None)
        return to_seconds(answer.lease)

    async def close(self) -> None:
        """Ends the session and a request of it that runs; the stages forget it."""
        request = pb.CloseSessionRequest(session_id=self.session_id)
        # Either it has ended already, or its lease ends it.
        with contextlib.suppress(SessionUnknownError, CoordinatorUnreachableError):
            await self._line.unary("close_session", request, None)

    def _order(
        self, request_id: str | None, outputs: Iterable[str] | None, is_idempotent: bool
    ) -> Order:
        return make_order(
            self.pipeline,
            request_id,
            outputs,
            is_idempotent=is_idempotent,
            session_id=self.session_id,
        )

    def _entered(self) -> pb.OpenSessionResponse:
        if self._opened is None:
            raise RuntimeError(
                "a session opens when it is entered: `async with client.session(...) as session:`"
            )
        return self._opened
