"""One `infer`: a request whose items go out and come in at the same time."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from stagewire import frame
from stagewire.client.given import Given
from stagewire.client.incoming import Outputs, Window
from stagewire.client.inputs import Inputs
from stagewire.client.outcome import Outcome
from stagewire.client.outgoing import Outgoing
from stagewire.client.receipt import Receipt, from_message
from stagewire.credit import Credit
from stagewire.errors import (
    CancelledError,
    InternalFaultError,
    PayloadCorruptError,
    StageError,
)
from stagewire.items import ReceivedItem
from stagewire.tensor import Value
from stagewire.v1 import coordinator_pb2 as pb

Start: TypeAlias = Callable[[Iterator[bytes]], Any]
"""Starts a call; what gRPC returns has no public type that can be cancelled, hence Any."""
Source: TypeAlias = "Value | bool | int | float | np.generic | Iterable[Given]"
"""Items of one input: a single value, or any iterable of values."""


@dataclass(frozen=True, slots=True)
class Output:
    """One item that came out."""

    port: str
    value: Value
    sequence: int


class Call:
    """A running request: a context manager that is iterated for its outputs.

    Leaving the `with` before the last output cancels the request. Sending and iterating may happen
    in different threads, and must when the inputs exceed the credit that a pipeline grants while
    nobody takes its outputs.
    """

    def __init__(
        self,
        start: Start,
        opening: bytes,
        sources: Mapping[str, Source],
        *,
        typed: Callable[[str, Given], Value],
        failure_of: Callable[[grpc.RpcError], StageError],
    ) -> None:
        self._start = start
        self._typed = typed
        self._failure_of = failure_of
        self._sources = sources
        self._outcome = Outcome()
        self._outgoing = Outgoing(opening)
        self._inputs = Inputs(self._outgoing, self._outcome)
        self._outputs = Outputs()
        self._windows: dict[str, Window] = {}
        self._arrived: deque[tuple[Output, int]] = deque()
        self._request_id: str | None = None
        self._receipt: Receipt | None = None
        self._stream: Any = None  # see Start
        self._feeders: ThreadPoolExecutor | None = None
        self._reader = threading.Thread(target=self._read, name="stagewire-call", daemon=True)

    def __enter__(self) -> "Call":
        if self._stream is not None:
            raise RuntimeError("a call is entered once; ask the client for another")
        self._stream = self._start(self._outgoing)
        self._reader.start()
        if self._sources:
            # A thread for each: a port that waits for credit must not hold up another one.
            self._feeders = ThreadPoolExecutor(len(self._sources), "stagewire-feed")
            for port, source in self._sources.items():
                fed = self._feeders.submit(self._feed, port, source)
                fed.add_done_callback(self._finish_feeding)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        self._reader.join()
        if self._feeders is not None:
            # Not waited for: an iterator of the caller may never answer again.
            self._feeders.shutdown(wait=False, cancel_futures=True)

    def __iter__(self) -> "Call":
        return self

    def __next__(self) -> Output:
        self._check_entered()
        with self._outcome.changed:
            self._outcome.changed.wait_for(lambda: self._arrived or self._outcome.is_over)
            if not self._arrived:
                if self._outcome.failure is not None:
                    raise self._outcome.failure
                raise StopIteration
            output, size_bytes = self._arrived.popleft()
            due = self._windows[output.port].consume(size_bytes)
        if due is not None:
            credit = pb.OutputCredit(port=output.port, items=due.items, size_bytes=due.size_bytes)
            self._outgoing.put_credit(pb.InferRequest(output_credit=credit).SerializeToString())
        return output

    def send(self, port: str, value: Given) -> None:
        """Sends one item on an input, waiting for credit; the value may change afterwards.

        Raises:
            TensorMismatchError: the port cannot hold a number that was given.
            FieldInvalidError: there is no such input, it has ended, or the value has no wire type.
            StageError: the request failed.
        """
        self._check_entered()
        self._inputs.send(port, self._typed(port, value))

    def end(self, port: str | None = None) -> None:
        """Says that nothing more follows on one input, or on each that `inputs` did not fill.

        Raises:
            FieldInvalidError: there is no such input.
            StageError: the request failed.
        """
        self._check_entered()
        if port is not None:
            self._inputs.end(port)
        else:
            self._inputs.end_all(but=frozenset(self._sources))

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
        with self._outcome.changed:
            self._outcome.changed.wait_for(
                lambda: self._request_id is not None or self._outcome.is_over
            )
            if self._request_id is None:
                self._outcome.check()
            return self._request_id or ""

    @property
    def receipt(self) -> Receipt:
        """What the request took, once its last output was taken.

        Raises:
            StageError: the request failed.
        """
        with self._outcome.changed:
            if self._outcome.failure is not None:
                raise self._outcome.failure
            if self._receipt is None or self._arrived or not self._outcome.is_over:
                raise RuntimeError("the receipt comes after the last output; iterate to the end")
            return self._receipt

    def _check_entered(self) -> None:
        if self._stream is None:
            raise RuntimeError(
                "a call starts when it is entered: `with client.infer(...) as call:`"
            )

    def _settle(self, failure: BaseException | None) -> None:
        self._outcome.settle(failure)
        if failure is not None and self._stream is not None:
            self._stream.cancel()
        self._outgoing.close()

    # --- inputs that were given at the start ---

    def _feed(self, port: str, source: Source) -> None:
        if isinstance(source, (str, bytes, np.ndarray, np.generic, bool, int, float)):
            self.send(port, source)
        else:
            for value in source:
                self.send(port, value)
        self._inputs.end(port)

    def _finish_feeding(self, fed: "Future[None]") -> None:
        failure = None if fed.cancelled() else fed.exception()
        if failure is not None:
            self._settle(failure)

    # --- the reader ---

    def _read(self) -> None:
        # Holds when the thread ends in a way that nobody foresaw: no one may wait for ever.
        failure: StageError | None = InternalFaultError("the reader of the call ended")
        try:
            for message in self._stream:
                self._accept(message)
            failure = None
            if self._receipt is None:
                failure = PayloadCorruptError("the call ended without its summary")
        except DecodeError:
            failure = PayloadCorruptError("a message of the coordinator cannot be read")
        except grpc.RpcError as error:
            failure = self._failure_of(error)
        except StageError as error:
            failure = error
        finally:
            self._settle(failure)

    def _accept(self, message: bytes) -> None:
        header, payload = frame.split(message)
        response = pb.InferResponse.FromString(bytes(header))
        kind = response.WhichOneof("message")
        if kind == "accepted":
            self._accept_opening(response.accepted)
        elif not self._inputs.is_accepted or self._receipt is not None:
            raise PayloadCorruptError("the coordinator sent a message out of turn")
        elif kind == "item":
            self._accept_item(response, payload)
        elif kind == "input_credit":
            more = response.input_credit
            self._inputs.grant(more.port, more.items, more.size_bytes)
        elif kind == "end_of_output":
            self._outputs.end(response.end_of_output.port, response.end_of_output.item_count)
        elif kind == "summary":
            self._outputs.finish()
            self._receipt = from_message(response.summary.receipt)
        # Anything else is an addition of a newer version, which must not matter to an older client.

    def _accept_opening(self, accepted: pb.InferAccepted) -> None:
        if self._inputs.is_accepted:
            raise PayloadCorruptError("the coordinator accepted the request twice")
        self._request_id = accepted.request_id
        self._inputs.accept(
            {item.port: Credit(item.items, item.size_bytes) for item in accepted.credits}
        )

    def _accept_item(self, response: pb.InferResponse, payload: memoryview) -> None:
        item = response.item
        with self._outcome.changed:
            window = self._windows.setdefault(item.port, Window())
            if item.chunk_offset_bytes == 0:
                window.take(item.port, item.tensor.size_bytes)
        received = self._outputs.accept(item, payload)
        if received is not None:
            self._arrive(received)

    def _arrive(self, received: ReceivedItem) -> None:
        output = Output(received.port, received.value(), received.sequence)
        with self._outcome.changed:
            self._arrived.append((output, received.descriptor.size_bytes))
            self._outcome.changed.notify_all()
