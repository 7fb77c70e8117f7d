"""A session of the asynchronous client: requests whose stages remember those before."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType

from stagewire.client.async_call import AsyncCall
from stagewire.client.async_line import AsyncLine
from stagewire.client.core.requests import AsyncSource, Order
from stagewire.client.given import Given
from stagewire.client.result import Result
from stagewire.client.session_terms import SessionTerms
from stagewire.errors import CoordinatorUnreachableError, SessionUnknownError
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_seconds


class AsyncSession(SessionTerms):
    """An open session of one pipeline, which is closed at the end of its `async with`.

    Its requests run one at a time, and each begins its lease anew. It is lost with any worker that
    remembers something of it.
    """

    _entering = "async with client.session(...) as session:"

    def __init__(
        self,
        line: AsyncLine,
        pipeline: str,
        idle_timeout: float | None,
        *,
        run: Callable[[Order, Mapping[str, Given], float | None], Awaitable[Result]],
        infer: Callable[[Order, Mapping[str, AsyncSource], float | None], AsyncCall],
    ) -> None:
        super().__init__(pipeline, idle_timeout)
        self._line = line
        self._run = run
        self._infer = infer

    async def __aenter__(self) -> "AsyncSession":
        self._opened = await self._line.unary("open_session", self._opening(), None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

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
