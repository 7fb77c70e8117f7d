"""One `infer` of the asynchronous client."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import grpc

from stagewire.channel import write_raw
from stagewire.client.async_line import ended
from stagewire.client.changes import Changes
from stagewire.client.core.dialogue import Dialogue, Output, Steps
from stagewire.client.core.requests import AsyncSource, Order, check_sendable, is_single
from stagewire.client.core.retrying import Attempts
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given
from stagewire.client.receipt import Receipt
from stagewire.errors import CancelledError, InternalFaultError, StageError
from stagewire.tensor import Value

AsyncStart: TypeAlias = Callable[[float | None], AbstractAsyncContextManager[Any]]
"""Starts a call; the block gets its stream, which has no public type that can be cancelled, hence
Any. What the call fails with comes out of the block as a `StageError`."""


class AsyncCall:
    """A running request: an asynchronous context manager that is iterated for its outputs.

    Leaving the `async with` before the last output cancels the request, and so does cancelling the
    task that is inside. Several tasks may send and take outputs.
    """

    def __init__(
        self,
        order: Order,
        sources: Mapping[str, AsyncSource],
        *,
        start: AsyncStart,
        typed: Callable[[str, Given], Awaitable[Value]],
        attempts: Attempts,
        timeout: float | None,
    ) -> None:
        self._order = order
        self._sources = sources
        self._start = start
        self._typed = typed
        self._attempts = attempts
        self._timeout = timeout
        self._changes = Changes()
        self._dialogue = Dialogue(order.opening(attempts.number))
        self._stream: Any = None  # see AsyncStart
        self._feeders: set[asyncio.Task[None]] = set()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "AsyncCall":
        if self._reader is not None:
            raise RuntimeError("a call is entered once; ask the client for another")
        # Time counts from here: between `infer` and `async with` the caller may do as it likes.
        self._deadline = Deadline(self._timeout)
        self._reader = asyncio.create_task(self._read_all())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        if self._reader is not None:
            await asyncio.wait({self._reader})

    def __aiter__(self) -> "AsyncCall":
        return self

    async def __anext__(self) -> Output:
        self._check_entered()
        await self._changes.until(lambda: self._dialogue.has_news)
        output = self._dialogue.take()
        # There may be credit to send.
        self._changes.tell()
        if output is None:
            raise StopAsyncIteration
        return output

    async def send(self, port: str, value: Given) -> None:
        """Sends one item on an input, waiting for credit; the value may change afterwards.

        A task that is cancelled inside a large item ends the request: half an item cannot stay.

        Raises:
            TensorMismatchError: the port cannot hold a number that was given.
            FieldInvalidError: there is no such input, it has ended, the value has no wire type, or
                the request is idempotent.
            StageError: the request failed.
        """
        self._check_entered()
        check_sendable(self._order)
        await self._drive(self._dialogue.send(port, await self._typed(port, value)))

    async def end(self, port: str | None = None) -> None:
        """Says that nothing more follows on one input, or on each that `inputs` did not fill.

        Those of an idempotent request end by themselves.

        Raises:
            FieldInvalidError: there is no such input.
            StageError: the request failed.
        """
        self._check_entered()
        if self._order.is_idempotent:
            return
        if port is not None:
            await self._drive(self._dialogue.end(port))
        else:
            await self._drive(self._dialogue.end_all(but=self._sources))

    def cancel(self) -> None:
        """Ends the request now; whoever waits for it gets a `stagewire.errors.CancelledError`."""
        self._settle(CancelledError("the request was cancelled"))

    @property
    async def request_id(self) -> str:
        """Id of the request, once the coordinator has accepted it: `await call.request_id`.

        Raises:
            StageError: the request failed before.
        """
        self._check_entered()
        await self._changes.until(lambda: self._dialogue.is_opened)
        if self._dialogue.request_id is None:
            self._dialogue.check()
        return self._dialogue.request_id or ""

    @property
    def receipt(self) -> Receipt:
        """What the request took, once its last output was taken.

        Raises:
            StageError: the request failed.
        """
        self._dialogue.check()
        if self._dialogue.receipt is None or not self._dialogue.is_drained:
            raise RuntimeError("the receipt comes after the last output; iterate to the end")
        return self._dialogue.receipt

    @property
    def attempts(self) -> int:
        """How often the request was sent; more than once only when it is idempotent."""
        return self._attempts.number

    def _check_entered(self) -> None:
        if self._reader is None:
            raise RuntimeError("a call starts with its `async with client.infer(...) as call:`")

    async def _drive(self, steps: Steps) -> None:
        try:
            for is_ready in steps:
                self._changes.tell()
                await self._changes.until(is_ready)
        finally:
            steps.close()
            self._changes.tell()

    def _settle(self, failure: BaseException | None) -> None:
        self._dialogue.settle(failure)
        self._changes.tell()
        if failure is not None and self._stream is not None:
            self._stream.cancel()

    # --- attempts ---

    async def _read_all(self) -> None:
        # Holds when the task ends in a way that nobody foresaw: no one may wait for ever.
        failure: BaseException | None = InternalFaultError("the reader of the call ended")
        try:
            while (failure := await self._attempt()) is not None:
                delay = self._next_attempt(failure)
                if delay is None or await self._wait_until_over(delay):
                    return
        finally:
            self._settle(failure)
            await self._stop_feeding()

    async def _attempt(self) -> StageError | None:
        """Carries one attempt to its end; returns how it failed."""
        dialogue = self._dialogue
        try:
            async with self._start(self._deadline.seconds_left()) as stream:
                self._stream = stream
                if dialogue.is_over:
                    stream.cancel()
                self._begin_feeding(dialogue)
                await self._exchange(dialogue, stream)
        except StageError as error:
            return error
        dialogue.conclude()
        self._changes.tell()
        if dialogue.failure is None:
            self._attempts.succeed()
        return None

    async def _exchange(self, dialogue: Dialogue, stream: Any) -> None:  # see AsyncStart
        self._is_connected = False
        writer = asyncio.create_task(self._write_all(dialogue, stream))
        try:
            async for message in stream:
                dialogue.accept(message)
                self._changes.tell()
        except asyncio.CancelledError:
            # Either this task is cancelled, which ends the call, or the call alone.
            stream.cancel()
            raise await ended(stream) from None
        finally:
            # Whatever came out: what has not ended must not wait for a reader.
            stream.cancel()
            dialogue.departures.close()
            self._changes.tell()
            if not self._is_connected:
                # It would wait for a connection that never comes. Later gRPC lets go of it.
                writer.cancel()
            await asyncio.wait({writer})

    async def _write_all(self, dialogue: Dialogue, stream: Any) -> None:  # see AsyncStart
        departures = dialogue.departures
        # Why a call has ended is told to who reads it.
        with contextlib.suppress(grpc.RpcError):
            await stream.wait_for_connection()
            self._is_connected = True
            while True:
                await self._changes.until(lambda: departures.is_ready)
                message = departures.take()
                self._changes.tell()
                if message is None or not await write_raw(stream, message):
                    return

    def _next_attempt(self, failure: StageError) -> float | None:
        """Puts the next attempt in the place of a failed one; returns how long it must wait."""
        before = self._dialogue
        if before.is_over or before.has_answered:
            return None
        delay = self._attempts.fail(failure, self._deadline.left(), random.random())
        if delay is None:
            return None
        self._stream = None
        self._dialogue = Dialogue(self._order.opening(self._attempts.number))
        before.settle(failure)
        self._changes.tell()
        return delay

    async def _wait_until_over(self, seconds: float) -> bool:
        await self._stop_feeding()
        over = self._changes.until(lambda: self._dialogue.is_over)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over, seconds)
        return self._dialogue.is_over

    # --- inputs that were given at the start ---

    def _begin_feeding(self, dialogue: Dialogue) -> None:
        # A task for each: a port that waits for credit must not hold up another one.
        jobs = [self._feed(dialogue, *given) for given in self._sources.items()]
        if self._order.is_idempotent:
            jobs.append(self._drive(dialogue.end_all(but=self._sources)))
        for job in jobs:
            task = asyncio.create_task(job)
            task.add_done_callback(partial(self._finish_feeding, dialogue))
            self._feeders.add(task)

    def _finish_feeding(self, dialogue: Dialogue, fed: "asyncio.Task[None]") -> None:
        failure = None if fed.cancelled() else fed.exception()
        if failure is not None and dialogue is self._dialogue:
            self._settle(failure)

    async def _feed(self, dialogue: Dialogue, port: str, source: AsyncSource) -> None:
        # What is no single value is an iterable, or its first use says that it is neither.
        values: Any = (source,) if is_single(source) else source
        if hasattr(values, "__aiter__"):
            async with contextlib.AsyncExitStack() as stack:
                if hasattr(values, "aclose"):
                    stack.push_async_callback(values.aclose)
                async for value in values:
                    await self._drive(dialogue.send(port, await self._typed(port, value)))
        else:
            for value in values:
                await self._drive(dialogue.send(port, await self._typed(port, value)))
        await self._drive(dialogue.end(port))

    async def _stop_feeding(self) -> None:
        feeders, self._feeders = self._feeders, set()
        for task in feeders:
            task.cancel()
        if feeders:
            await asyncio.wait(feeders)
