"""One `infer`: a request whose items go out and come in at the same time."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

from stagewire.client.core.dialogue import Dialogue, Output, Steps
from stagewire.client.core.requests import Order, Source, check_sendable, is_single
from stagewire.client.core.retrying import Attempts
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given
from stagewire.client.receipt import Receipt
from stagewire.errors import (
    CancelledError,
    InternalFaultError,
    StageError,
)
from stagewire.tensor import Value

Start: TypeAlias = Callable[[Iterator[bytes], float | None], AbstractContextManager[Any]]
"""Starts a call; the block gets its stream, which has no public type that can be cancelled, hence
Any. What the call fails with comes out of the block as a `StageError`."""


class Call:
    """A running request: a context manager that is iterated for its outputs.

    Leaving the `with` before the last output cancels the request. Sending and iterating may happen
    in different threads, and must when the inputs exceed the credit that a pipeline grants while
    nobody takes its outputs.
    """

    def __init__(
        self,
        order: Order,
        sources: Mapping[str, Source],
        *,
        start: Start,
        typed: Callable[[str, Given], Value],
        attempts: Attempts,
        timeout: float | None,
    ) -> None:
        self._order = order
        self._sources = sources
        self._start = start
        self._typed = typed
        self._attempts = attempts
        self._timeout = timeout
        self._changed = threading.Condition()
        self._dialogue = Dialogue(order.opening(attempts.number))
        self._stream: Any = None  # see Start
        self._feeders: ThreadPoolExecutor | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> "Call":
        if self._reader is not None:
            raise RuntimeError("a call is entered once; ask the client for another")
        # Time counts from here: between `infer` and `with` the caller may do as it likes.
        self._deadline = Deadline(self._timeout)
        self._reader = threading.Thread(target=self._read_all, name="stagewire-call", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        if self._reader is not None:
            self._reader.join()

    def __iter__(self) -> "Call":
        return self

    def __next__(self) -> Output:
        self._check_entered()
        with self._changed:
            self._changed.wait_for(lambda: self._dialogue.has_news)
            output = self._dialogue.take()
            # There may be credit to send.
            self._changed.notify_all()
        if output is None:
            raise StopIteration
        return output

    def send(self, port: str, value: Given) -> None:
        """Sends one item on an input, waiting for credit; the value may change afterwards.

        Raises:
            TensorMismatchError: the port cannot hold a number that was given.
            FieldInvalidError: there is no such input, it has ended, the value has no wire type, or
                the request is idempotent.
            StageError: the request failed.
        """
        self._check_entered()
        check_sendable(self._order)
        self._drive(self._dialogue.send(port, self._typed(port, value)))

    def end(self, port: str | None = None) -> None:
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
            self._drive(self._dialogue.end(port))
        else:
            self._drive(self._dialogue.end_all(but=self._sources))

    def cancel(self) -> None:
        """Ends the request now; whoever waits for it gets a `CancelledError`."""
        self._settle(CancelledError("the request was cancelled"))

    @property
    def request_id(self) -> str:
        """Id of the request; waits until the coordinator has accepted it.

        Raises:
            StageError: the request failed before.
        """
        self._check_entered()
        with self._changed:
            self._changed.wait_for(lambda: self._dialogue.is_opened)
            if self._dialogue.request_id is None:
                self._dialogue.check()
            return self._dialogue.request_id or ""

    @property
    def receipt(self) -> Receipt:
        """What the request took, once its last output was taken.

        Raises:
            StageError: the request failed.
        """
        with self._changed:
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
            raise RuntimeError(
                "a call starts when it is entered: `with client.infer(...) as call:`"
            )

    def _drive(self, steps: Steps) -> None:
        with self._changed:
            try:
                for is_ready in steps:
                    self._changed.notify_all()
                    self._changed.wait_for(is_ready)
            finally:
                steps.close()
                self._changed.notify_all()

    def _settle(self, failure: BaseException | None) -> None:
        with self._changed:
            self._dialogue.settle(failure)
            stream = self._stream
            self._changed.notify_all()
        if failure is not None and stream is not None:
            stream.cancel()

    # --- attempts ---

    def _read_all(self) -> None:
        # Holds when the thread ends in a way that nobody foresaw: no one may wait for ever.
        failure: BaseException | None = InternalFaultError("the reader of the call ended")
        try:
            while (failure := self._attempt()) is not None:
                delay = self._next_attempt(failure)
                if delay is None or self._wait_until_over(delay):
                    return
        finally:
            self._settle(failure)
            self._stop_feeding()

    def _attempt(self) -> StageError | None:
        """Carries one attempt to its end; returns how it failed."""
        dialogue = self._dialogue
        try:
            messages = _Messages(dialogue, self._changed)
            with self._start(messages, self._deadline.seconds_left()) as stream:
                with self._changed:
                    self._stream = stream
                    is_cancelled = dialogue.is_over
                if is_cancelled:
                    stream.cancel()
                self._begin_feeding(dialogue)
                for message in stream:
                    with self._changed:
                        dialogue.accept(message)
                        self._changed.notify_all()
        except StageError as error:
            return error
        finally:
            # Whatever else came out: what has not ended must not wait for a reader.
            if self._stream is not None:
                self._stream.cancel()
        with self._changed:
            dialogue.conclude()
            self._changed.notify_all()
        if dialogue.failure is None:
            self._attempts.succeed()
        return None

    def _next_attempt(self, failure: StageError) -> float | None:
        """Puts the next attempt in the place of a failed one; returns how long it must wait."""
        with self._changed:
            before = self._dialogue
            if before.is_over or before.has_answered:
                return None
            delay = self._attempts.fail(failure, self._deadline.left(), random.random())
            if delay is None:
                return None
            self._stream = None
            self._dialogue = Dialogue(self._order.opening(self._attempts.number))
            before.settle(failure)
            self._changed.notify_all()
        self._stop_feeding()
        return delay

    def _wait_until_over(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._dialogue.is_over, seconds)

    # --- inputs that were given at the start ---

    def _begin_feeding(self, dialogue: Dialogue) -> None:
        # A thread for each: a port that waits for credit must not hold up another one.
        jobs = [partial(self._feed, dialogue, *given) for given in self._sources.items()]
        if self._order.is_idempotent:
            jobs.append(partial(self._drive, dialogue.end_all(but=self._sources)))
        if jobs:
            self._feeders = ThreadPoolExecutor(len(jobs), "stagewire-feed")
            for job in jobs:
                fed = self._feeders.submit(job)
                fed.add_done_callback(partial(self._finish_feeding, dialogue))

    def _feed(self, dialogue: Dialogue, port: str, source: Source) -> None:
        # What is no single value is an iterable, or its first use says that it is neither.
        values: Any = (source,) if is_single(source) else source
        for value in values:
            self._drive(dialogue.send(port, self._typed(port, value)))
        self._drive(dialogue.end(port))

    def _finish_feeding(self, dialogue: Dialogue, fed: "Future[None]") -> None:
        failure = None if fed.cancelled() else fed.exception()
        if failure is not None and dialogue is self._dialogue:
            self._settle(failure)

    def _stop_feeding(self) -> None:
        if self._feeders is not None:
            # Not waited for: an iterator of the caller may never answer again.
            self._feeders.shutdown(wait=False, cancel_futures=True)
            self._feeders = None


class _Messages:
    """What gRPC takes from a dialogue, in a thread of its own."""

    def __init__(self, dialogue: Dialogue, changed: threading.Condition) -> None:
        self._departures = dialogue.departures
        self._changed = changed

    def __iter__(self) -> "_Messages":
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._departures.is_ready)
            message = self._departures.take()
            self._changed.notify_all()
        if message is None:
            raise StopIteration
        return message
