"""One request of a fake coordinator: its items on their way in and out, and what a test sees."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stagewire.client.testing.pipelines import FakePipeline
from stagewire.credit import Credit, Due
from stagewire.errors import (
    CancelledError,
    FieldInvalidError,
    OutputContractError,
    StageError,
    StageFaultError,
    TensorMismatchError,
)
from stagewire.items import Assembler
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import tensor_pb2


@dataclass(frozen=True)
class Scripted:
    """A failure of one request."""

    failure: StageError
    after_outputs: int
    """Items that come out before it; 0 for a request that is not even admitted."""


@dataclass(eq=False)
class FakeRequest:
    """What a test and a function see of a request."""

    pipeline: str
    request_id: str
    attempt: int
    is_idempotent: bool
    outputs: tuple[str, ...]
    """Outputs that were asked for; none for all."""
    session_id: str
    session: dict[str, Any] | None
    """For the function to keep what it likes between the requests of a session."""
    inputs: dict[str, list[Value]] = field(default_factory=dict)
    """Every item that came, by input."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the caller has cancelled it, or has gone."""


class _Input:
    def __init__(self, name: str) -> None:
        self.assembler = Assembler(name)
        self.waiting: deque[tuple[Value, int]] = deque()
        self.count = 0
        self.is_ended = False
        self.due = Due()


class Exchange:
    """Items of one request. Its function runs in one thread, its call in others.

    `emit` gets each output item; `grant` gets credit for an input.
    """

    def __init__(
        self,
        request: FakeRequest,
        pipeline: FakePipeline,
        *,
        emit: Callable[[str, int, Value], None],
        grant: Callable[[str, int, int], None],
        scripted: Scripted | None = None,
    ) -> None:
        self.request = request
        self.counts: dict[str, int] = {}
        """Items that have left, by output."""
        self._pipeline = pipeline
        self._emit = emit
        self._grant = grant
        self._scripted = scripted
        self._inputs = {name: _Input(name) for name in pipeline.input_ports}
        self._credits: dict[str, Credit] = {}
        self._changed = threading.Condition()
        self._is_done = False

    # --- from the caller ---

    def take(self, item: tensor_pb2.Item, payload: memoryview) -> None:
        """Takes one chunk of an input.

        Raises:
            StageError: there is no such input, or the item breaks its rules.
        """
        target = self._input(item.port)
        if target.is_ended:
            raise FieldInvalidError(f"an item came after the end of {item.port!r}")
        received = target.assembler.accept(item, payload)
        if received is None:
            return
        port = self._pipeline.input_ports[item.port]
        if self._pipeline.is_checked(item.port):
            port.check(received.descriptor)
        target.count += 1
        if not port.is_stream and target.count > 1:
            raise TensorMismatchError(f"port {port.name!r} is no stream and got a second item")
        value = received.value()
        with self._changed:
            self.request.inputs.setdefault(item.port, []).append(value)
            target.waiting.append((value, received.descriptor.size_bytes))
            self._changed.notify_all()

    def end(self, name: str) -> None:
        """Ends one input, or with an empty name all.

        Raises:
            StageError: there is no such input, or it ended without its item.
        """
        for port in (name,) if name else self._inputs:
            target = self._input(port)
            if not self._pipeline.input_ports[port].is_stream and not target.count:
                raise TensorMismatchError(f"port {port!r} needs one item and got 0")
            with self._changed:
                target.is_ended = True
                self._changed.notify_all()

    def grant_output(self, name: str, items: int, size_bytes: int) -> None:
        """Lets an output send more."""
        with self._changed:
            self._credit(name).grant(items, size_bytes)
            self._changed.notify_all()

    def cancel(self) -> None:
        """Ends every wait; nothing happens when the function has ended."""
        with self._changed:
            if not self._is_done:
                self.request.cancelled.set()
            self._changed.notify_all()

    @property
    def have_inputs_ended(self) -> bool:
        """Whether nothing more can come."""
        return all(source.is_ended for source in self._inputs.values())

    # --- the function ---

    def run(self) -> None:
        """Calls the function on the inputs and emits what it answers.

        Raises:
            StageError: it failed, or the caller has gone.
        """
        arguments: Mapping[str, Any] = {
            name: self._items(name) if port.is_stream else next(self._items(name))
            for name, port in self._pipeline.input_ports.items()
        }
        try:
            for output, value in self._pipeline.call(arguments, self.request):
                self._send(output, value)
        except StageError:
            raise
        except Exception as error:  # the outermost edge of the caller's own function
            raise StageFaultError(f"the function of the pipeline raised {error!r}") from error
        finally:
            with self._changed:
                self._is_done = True

    def _items(self, name: str) -> Iterator[Value]:
        source = self._inputs[name]
        while True:
            self._wait(lambda: source.waiting or source.is_ended)
            if not source.waiting:
                return
            value, size_bytes = source.waiting.popleft()
            yield value
            due = source.due.add(1, size_bytes)
            if due is not None:
                self._grant(name, due.items, due.size_bytes)

    def _send(self, output: str, value: Value) -> None:
        wanted = self.request.outputs
        if wanted and output not in wanted:
            return
        descriptor, _ = encode(value)
        port = self._pipeline.output_ports.get(output)
        if port is not None:
            try:
                port.check(descriptor)
            except TensorMismatchError as error:
                raise OutputContractError(error.message) from None
        elif self._pipeline.output_ports:
            names = ", ".join(self._pipeline.output_ports)
            raise OutputContractError(f"there is no output {output!r}; there is {names}")
        self._wait(lambda: self._credit(output).is_open)
        self._credit(output).spend(descriptor.size_bytes)
        sequence = self.counts.get(output, 0)
        self.counts[output] = sequence + 1
        self._emit(output, sequence, value)
        self._fail_as_scripted()

    def _fail_as_scripted(self) -> None:
        scripted = self._scripted
        if scripted is not None and sum(self.counts.values()) >= scripted.after_outputs:
            raise scripted.failure

    def _wait(self, is_true: Callable[[], object]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: is_true() or self.request.cancelled.is_set())
            if self.request.cancelled.is_set():
                raise CancelledError("the caller went away")

    def _credit(self, name: str) -> Credit:
        return self._credits.setdefault(name, Credit(WINDOW_ITEMS, WINDOW_BYTES))

    def _input(self, name: str) -> _Input:
        if name not in self._inputs:
            raise FieldInvalidError(
                f"the pipeline has no input {name!r}; it has {', '.join(self._inputs) or 'none'}",
                port=name,
            )
        return self._inputs[name]


def opened(opening: pb.InferOpen, request_id: str, session: dict[str, Any] | None) -> FakeRequest:
    """Returns what a test sees of a request that was opened."""
    return FakeRequest(
        opening.pipeline,
        request_id,
        opening.attempt or 1,
        opening.idempotent,
        tuple(opening.outputs),
        opening.session_id,
        session,
    )
