"""One attempt at one `Infer`: what may leave, what has come, and how it ended.

What waits is written as a generator of conditions. A client runs it step by step: before each step
it waits, in its own way, until the condition holds. One step runs at a time.
"""

from collections import deque
from collections.abc import Callable, Container, Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf.message import DecodeError

from stagewire import frame
from stagewire.chunks import chunks_of
from stagewire.client.core.departures import Departures
from stagewire.client.core.incoming import Outputs, Window
from stagewire.client.receipt import Receipt, from_message
from stagewire.credit import Credit
from stagewire.errors import CancelledError, FieldInvalidError, PayloadCorruptError
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb

Steps: TypeAlias = Generator[Callable[[], bool], None, None]
"""Yields what must hold before the next step."""


@dataclass(frozen=True, slots=True)
class Output:
    """One item that came out."""

    port: str
    value: Value
    sequence: int


@dataclass(slots=True)
class _Input:
    credit: Credit
    items: int = 0
    is_taken: bool = False
    """Whether an item is being cut up: the chunks of two items of one port must not mix."""
    is_ended: bool = False


class Dialogue:
    """Both directions of one call."""

    def __init__(self, opening: pb.InferOpen) -> None:
        self.departures = Departures(pb.InferRequest(open=opening).SerializeToString())
        self.request_id: str | None = None
        self.receipt: Receipt | None = None
        self.is_over = False
        self.failure: BaseException | None = None
        """How it ended; also what an iterator of the caller raised while it was read."""
        self.has_answered = False
        """Whether an output has come, so that this attempt cannot be replaced by another."""
        self._inputs: Mapping[str, _Input] | None = None
        self._outputs = Outputs()
        self._windows: dict[str, Window] = {}
        self._arrived: deque[tuple[Output, int]] = deque()

    # --- the end ---

    def settle(self, failure: BaseException | None) -> None:
        """Ends the call, with success for None; the first word holds."""
        if not self.is_over:
            self.is_over = True
            self.failure = failure
        self.departures.close()

    def conclude(self) -> None:
        """Takes the good end of the stream of answers."""
        problem = None
        if self.receipt is None:
            problem = PayloadCorruptError("the call ended without its summary")
        self.settle(problem)

    def check(self) -> None:
        """Returns while the call goes on and when it has succeeded.

        Raises:
            StageError: what it failed with.
        """
        if self.failure is not None:
            raise self.failure

    def _check_going_on(self) -> None:
        self.check()
        if self.is_over:
            raise CancelledError("the request ended before all of its input was sent")

    # --- inputs ---

    @property
    def is_opened(self) -> bool:
        """Whether the coordinator has named the inputs, or never will."""
        return self.is_over or self._inputs is not None

    def send(self, port: str, value: Value) -> Steps:
        """Sends one item, waiting for credit and room.

        Raises:
            FieldInvalidError: there is no such port, it has ended, or the value has no wire type.
            StageError: the call failed.
        """
        descriptor, payload = encode(value)
        yield lambda: self.is_opened
        target = self._input(port)
        yield lambda: self.is_over or not target.is_taken
        target.is_taken = True
        is_begun = is_whole = False
        try:
            yield lambda: self.is_over or target.is_ended or target.credit.is_open
            self._check_going_on()
            if target.is_ended:
                raise FieldInvalidError(f"input {port!r} has ended; it takes no more items")
            target.credit.spend(descriptor.size_bytes)
            for chunk in chunks_of(port, target.items, descriptor, payload):
                header = pb.InferRequest(item=chunk.item).SerializeToString()
                message = frame.join(header, [chunk.payload])
                yield lambda: self.is_over or self.departures.has_room
                self._check_going_on()
                self.departures.put(message)
                is_begun = True
            target.items += 1
            is_whole = True
        finally:
            target.is_taken = False
            if is_begun and not is_whole:
                self.settle(CancelledError("the sending of an item was broken off inside it"))

    def end(self, port: str) -> Steps:
        """Ends one port; nothing happens when it had ended.

        Raises:
            FieldInvalidError: there is no such port.
            StageError: the call failed.
        """
        yield lambda: self.is_opened
        target = self._input(port)
        yield lambda: self.is_over or not target.is_taken
        if target.is_ended:
            return
        target.is_ended = True
        yield lambda: self.is_over or self.departures.has_room
        self.check()
        if not self.is_over:
            message = pb.InferRequest(end_of_input=pb.EndOfInput(port=port))
            self.departures.put(message.SerializeToString())

    def end_all(self, but: Container[str]) -> Steps:
        """Ends every port except some.

        Raises:
            StageError: the call failed.
        """
        yield lambda: self.is_opened
        # A call that failed early says so here, also to who only ends its ports.
        self.check()
        for port in self._inputs or ():
            if port not in but:
                yield from self.end(port)

    def _input(self, port: str) -> _Input:
        self.check()
        inputs = self._inputs or {}
        if port not in inputs:
            raise FieldInvalidError(
                f"the pipeline has no input {port!r}; it has {', '.join(inputs) or 'none'}",
                port=port,
            )
        return inputs[port]

    # --- outputs ---

    @property
    def has_news(self) -> bool:
        """Whether an output can be taken, or none will come any more."""
        return self.is_over or bool(self._arrived)

    @property
    def is_drained(self) -> bool:
        """Whether the call has ended and every output was taken."""
        return self.is_over and not self._arrived

    def take(self) -> Output | None:
        """Takes the next output and gives its credit back; None after the last one.

        Raises:
            StageError: the call failed; outputs that came before are taken first.
        """
        if not self._arrived:
            self.check()
            return None
        output, size_bytes = self._arrived.popleft()
        due = self._windows[output.port].consume(size_bytes)
        if due is not None and not self.is_over:
            credit = pb.OutputCredit(port=output.port, items=due.items, size_bytes=due.size_bytes)
            self.departures.put_credit(pb.InferRequest(output_credit=credit).SerializeToString())
        return output

    # --- what comes ---

    def accept(self, message: bytes) -> None:
        """Takes one message of the coordinator.

        Raises:
            StageError: it breaks the rules.
        """
        header, payload = frame.split(message)
        try:
            response = pb.InferResponse.FromString(bytes(header))
        except DecodeError:
            raise PayloadCorruptError("a message of the coordinator cannot be read") from None
        kind = response.WhichOneof("message")
        if kind == "accepted":
            self._open(response.accepted)
        elif self._inputs is None or self.receipt is not None:
            raise PayloadCorruptError("the coordinator sent a message out of turn")
        elif kind == "item":
            self._take_item(response, payload)
        elif kind == "input_credit":
            more = response.input_credit
            if more.port in self._inputs:
                self._inputs[more.port].credit.grant(more.items, more.size_bytes)
        elif kind == "end_of_output":
            self._outputs.end(response.end_of_output.port, response.end_of_output.item_count)
        elif kind == "summary":
            self._outputs.finish()
            self.receipt = from_message(response.summary.receipt)
        # Anything else is an addition of a newer version, which must not matter to an older client.

    def _open(self, accepted: pb.InferAccepted) -> None:
        if self._inputs is not None:
            raise PayloadCorruptError("the coordinator accepted the request twice")
        self.request_id = accepted.request_id
        self._inputs = {
            item.port: _Input(Credit(item.items, item.size_bytes)) for item in accepted.credits
        }

    def _take_item(self, response: pb.InferResponse, payload: memoryview) -> None:
        item = response.item
        window = self._windows.setdefault(item.port, Window())
        if item.chunk_offset_bytes == 0:
            window.take(item.port, item.tensor.size_bytes)
        received = self._outputs.accept(item, payload)
        if received is not None:
            self.has_answered = True
            output = Output(received.port, received.value(), received.sequence)
            self._arrived.append((output, received.descriptor.size_bytes))
