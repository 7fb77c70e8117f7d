"""The asynchronous client of one coordinator: as `Client`, for one event loop."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from stagewire.client import state
from stagewire.client.async_call import AsyncCall
from stagewire.client.async_line import AsyncLine, awaited
from stagewire.client.async_session import AsyncSession
from stagewire.client.core.requests import (
    AsyncSource,
    Order,
    UnaryRequest,
    check_sources,
    gathered,
    result_of,
)
from stagewire.client.core.retrying import Attempts, Budget
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given, check_seconds
from stagewire.client.line import STATE_SECONDS
from stagewire.client.location import GivenLocation, StateFolder
from stagewire.client.orders import make_order
from stagewire.client.result import Result
from stagewire.endpoint import default_state_folder
from stagewire.errors import StageError
from stagewire.tensor import Value
from stagewire.v1 import coordinator_pb2 as pb


class AsyncClient:
    """Runs pipelines of one coordinator. May be used by several tasks of one loop; close it."""

    def __init__(self, address: str, token: str) -> None:
        self._line = AsyncLine(GivenLocation(address, token))
        self._budget = Budget()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; calls that still run are cancelled."""
        await self._line.close()

    async def run(
        self,
        pipeline: str,
        inputs: Mapping[str, Given],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Result:
        """Runs a pipeline on one item an input and returns everything that came out.

        As `Client.run`. A task that is cancelled meanwhile cancels the request.

        Raises:
            StageError: as `Client.run`.
        """
        order = make_order(pipeline, request_id, outputs, is_idempotent=idempotent)
        return await self._run(order, inputs, timeout)

    def infer(
        self,
        pipeline: str,
        inputs: Mapping[str, AsyncSource] | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> AsyncCall:
        """Returns a call whose items go out and come in at the same time; it starts when entered.

        As `Client.infer`, but each of `inputs` may be an asynchronous iterable too. An ordinary one
        is read on the loop, so it must not wait for anything.

        Raises:
            FieldInvalidError: `timeout` is no time, or an input cannot be read again.
        """
        order = make_order(pipeline, request_id, outputs, is_idempotent=idempotent)
        return self._infer(order, inputs or {}, timeout)

    def session(self, pipeline: str, *, idle_timeout: float | None = None) -> AsyncSession:
        """Returns a session of a pipeline, which opens when it is entered.

        It ends by itself after `idle_timeout` seconds without a request; without a time the
        coordinator chooses one.

        Raises:
            FieldInvalidError: `idle_timeout` is no time.
        """
        return AsyncSession(self._line, pipeline, idle_timeout, run=self._run, infer=self._infer)

    async def placement(self, timeout: float = STATE_SECONDS) -> state.CoordinatorState:
        """Returns what runs where, and why.

        Raises:
            FieldInvalidError: `timeout` is no time.
            CoordinatorUnreachableError: no coordinator answers, or not in time.
            StageError: the call failed.
        """
        return await self._line.state(check_seconds("timeout", timeout))

    def watch(self, timeout: float | None = None) -> AsyncIterator[state.CoordinatorState]:
        """Iterates over the state now and after every change; closing the iterator ends it.

        Raises:
            FieldInvalidError: `timeout` is no time; said before anything is taken.
            CoordinatorUnreachableError: no coordinator answers, or it went away.
            StageError: the call failed.
        """
        return self._watch(check_seconds("timeout", timeout))

    async def _run(
        self, order: Order, inputs: Mapping[str, Given], timeout: float | None
    ) -> Result:
        deadline = Deadline(timeout)
        attempts = Attempts(self._budget, is_idempotent=order.is_idempotent)
        while True:
            try:
                values = {
                    port: await self._line.typed(order.pipeline, port, given, deadline)
                    for port, given in inputs.items()
                }
                result = await self._run_once(order, values, attempts.number, deadline)
            except StageError as failure:
                delay = attempts.fail(failure, deadline.left(), random.random())
                if delay is None:
                    raise
            else:
                attempts.succeed()
                return result
            await asyncio.sleep(delay)

    async def _run_once(
        self, order: Order, values: Mapping[str, Value], attempt: int, deadline: Deadline
    ) -> Result:
        request = UnaryRequest(order, values)
        if not request.fits:
            return await self._run_in_chunks(order, values, attempt, deadline)
        async with self._line.calling() as connection:
            call = connection.run(
                request.message(attempt),
                timeout=deadline.seconds_left(),
                metadata=connection.metadata,
            )
            return result_of(await awaited(call, call), attempt)

    async def _run_in_chunks(
        self, order: Order, values: Mapping[str, Value], attempt: int, deadline: Deadline
    ) -> Result:
        # One attempt: what came out of it is given to nobody before its end.
        once = Attempts(Budget(), is_idempotent=False)
        once.number = attempt
        async with self._call(order, values, once, deadline.seconds_left()) as call:
            if not order.is_idempotent:
                # An input that is missing ends without an item, which the coordinator refuses.
                await call.end()
            outputs = [(output.port, output.value) async for output in call]
            return gathered(outputs, call.receipt, attempt)

    def _infer(
        self, order: Order, sources: Mapping[str, AsyncSource], timeout: float | None
    ) -> AsyncCall:
        check_sources(order, sources)
        attempts = Attempts(self._budget, is_idempotent=order.is_idempotent)
        return self._call(order, sources, attempts, check_seconds("timeout", timeout))

    def _call(
        self,
        order: Order,
        sources: Mapping[str, AsyncSource],
        attempts: Attempts,
        timeout: float | None,
    ) -> AsyncCall:
        return AsyncCall(
            order,
            sources,
            start=self._stream,
            typed=lambda port, given: self._line.typed(
                order.pipeline, port, given, Deadline(timeout)
            ),
            attempts=attempts,
            timeout=timeout,
        )

    @contextlib.asynccontextmanager
    async def _stream(self, timeout: float | None) -> AsyncIterator[Any]:
        async with self._line.calling() as connection:
            try:
                yield connection.infer(timeout=timeout, metadata=connection.metadata)
            except StageError as error:
                raise self._line.failure(connection, error) from None

    async def _watch(self, timeout: float | None) -> AsyncIterator[state.CoordinatorState]:
        async with self._line.calling() as connection:
            stream = connection.watch_state(
                pb.WatchStateRequest(), timeout=timeout, metadata=connection.metadata
            )
            try:
                while isinstance(
                    response := await awaited(stream, stream.read()), pb.WatchStateResponse
                ):
                    yield state.from_message(response.state)
            finally:
                stream.cancel()


def connect_async(state: Path | None = None, plan: str | None = None) -> AsyncClient:
    """Returns an asynchronous client of the coordinator that runs on this machine.

    As `connect`; it needs no `await`, because it connects when it is first used.

    Raises:
        CoordinatorUnreachableError: none runs there, or it runs another plan.
        PathForbiddenError: the endpoint file is not closed to other users.
    """
    folder = StateFolder(default_state_folder() if state is None else Path(state), plan)
    client = AsyncClient(*folder.here())
    client._line = AsyncLine(folder)
    return client
