"""One run of one stage: where the loop, which moves items, meets the lane, which computes."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from stagewire.credit import Credit, Due
from stagewire.errors import (
    DeadlineExceededError,
    InternalFaultError,
    OutputContractError,
    PayloadCorruptError,
    StageError,
    TensorMismatchError,
)
from stagewire.items import Assembler, ReceivedItem, to_chunks
from stagewire.ports import Port
from stagewire.tensor import DataType, TensorDescriptor, Value
from stagewire.v1 import gateway_pb2 as gateway
from stagewire.v1 import tensor_pb2 as tensor
from stagewire.worker.executor import ExecutionEnded, Session, StageOrder
from stagewire.worker.outbox import Outbox

__all__ = ["ExecutionEnded", "LaneExecution", "Times"]

Acknowledge = Callable[[int, str, int, int], None]
"""Called with execution, port, items and bytes when enough is due to be given back."""


@dataclass(slots=True)
class Times:
    """Moments (monotonic seconds) and amounts of one execution."""

    created: float = field(default_factory=time.monotonic)
    started: float | None = None
    first_output: float | None = None
    waited_seconds: float = 0.0
    input_items: int = 0
    input_bytes: int = 0
    output_items: int = 0
    output_bytes: int = 0


@dataclass(slots=True)
class _Input:
    port: Port
    assembler: Assembler
    waiting: deque[ReceivedItem] = field(default_factory=deque)
    has_ended: bool = False
    held_bytes: int | None = None
    """Bytes of the item that the executor holds and has not finished with."""
    due: Due = field(default_factory=Due)


@dataclass(slots=True)
class _Output:
    port: Port
    credit: Credit
    sent: int = 0


class LaneExecution:
    """An execution as the lane's thread and the loop share it; implements `Execution`.

    The loop calls `push`, `end`, `grant` and `cancel`; the lane calls the rest.
    """

    def __init__(
        self,
        execution_id: int,
        order: StageOrder,
        *,
        deadline: float | None,
        credits: Mapping[str, Credit],
        outbox: Outbox,
        acknowledge: Acknowledge,
        session: Session | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.stage_id = order.stage_id
        self.deadline = deadline
        self.session = session
        self.times = Times()
        self.is_cancelled = False
        self._inputs = {port.name: _Input(port, Assembler(port.name)) for port in order.inputs}
        self._outputs = {
            port.name: _Output(port, credits.get(port.name, Credit(0, 0))) for port in order.outputs
        }
        self._outbox = outbox
        self._acknowledge = acknowledge
        self.note_progress: Callable[[bool], None] = lambda _: None
        """Counts a step; set by the lane whose thread runs the execution."""
        self._changed = threading.Condition()
        self._failure: StageError | None = None

    # --- called by the loop ---

    def push(self, item: tensor.Item, payload: memoryview) -> None:
        """Takes one chunk of an input item.

        Raises:
            StageError: the chunk is damaged or breaks the rules of the port.
        """
        entry = self._inputs.get(item.port)
        if entry is None:
            raise InternalFaultError(f"stage {self.stage_id!r} has no input port {item.port!r}")
        received = entry.assembler.accept(item, payload)
        if received is None:
            return
        entry.port.check(received.descriptor)
        with self._changed:
            entry.waiting.append(received)
            self._changed.notify_all()

    def end(self, port: str) -> None:
        """Notes that no more items follow on an input port."""
        entry = self._inputs.get(port)
        if entry is None or not entry.assembler.is_between_items:
            raise PayloadCorruptError(f"port {port!r} ended inside an item")
        with self._changed:
            entry.has_ended = True
            self._changed.notify_all()

    def grant(self, port: str, items: int, size_bytes: int) -> None:
        """Adds credit to an output port."""
        entry = self._outputs.get(port)
        if entry is not None:
            with self._changed:
                entry.credit.grant(items, size_bytes)
                self._changed.notify_all()

    def cancel(self) -> None:
        """Makes every wait of the executor end."""
        with self._changed:
            self.is_cancelled = True
            self._changed.notify_all()

    def drop_inputs(self) -> int:
        """Forgets waiting input items; returns their bytes."""
        with self._changed:
            freed = 0
            for entry in self._inputs.values():
                freed += sum(item.payload.nbytes for item in entry.waiting)
                freed += entry.held_bytes or 0
                entry.waiting.clear()
                entry.held_bytes = None
        return freed

    # --- called by the executor, on the lane ---

    @property
    def remaining_seconds(self) -> float:
        """Time until the deadline; infinite when there is none."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    @property
    def has_ended(self) -> bool:
        """Whether it was cancelled or its deadline passed."""
        return self.is_cancelled or self.remaining_seconds <= 0

    def receive(self, port: str) -> Value | None:
        """Waits for the next item of an input port; None after the last one."""
        entry = self._inputs[port]
        self._release_held(entry)
        with self._changed:
            self._wait(lambda: bool(entry.waiting) or entry.has_ended)
            if not entry.waiting:
                return None
            received = entry.waiting.popleft()
            entry.held_bytes = received.payload.nbytes
        self.times.input_items += 1
        self.times.input_bytes += received.payload.nbytes
        # Here, on the lane: a tensor of many strings would hold up the loop.
        return received.value()

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""
        while (value := self.receive(port)) is not None:
            yield value

    def send(self, port: str, value: Value) -> None:
        """Sends one item on an output port, waiting for credit."""
        entry = self._outputs.get(port)
        if entry is None:
            raise OutputContractError(f"stage {self.stage_id!r} has no output port {port!r}")
        if entry.sent and not entry.port.is_stream:
            raise OutputContractError(
                f"stage {self.stage_id!r} sent a second item on {port!r}, which is no stream"
            )
        chunks = list(to_chunks(port, entry.sent, value))
        described = chunks[0].item.tensor
        descriptor = TensorDescriptor(
            DataType(described.data_type),
            tuple(described.shape),
            described.size_bytes,
        )
        try:
            entry.port.check(descriptor)
        except TensorMismatchError as error:
            raise OutputContractError(
                f"stage {self.stage_id!r} broke its own port: {error.message}", port=port
            ) from error
        with self._changed:
            self._wait(lambda: entry.credit.is_open)
            entry.credit.spend(descriptor.size_bytes)
        entry.sent += 1
        for chunk in chunks:
            self._outbox.put(
                gateway.ExchangeMessage(execution_id=self.execution_id, item=chunk.item),
                chunk.payload,
            )
        if self.times.first_output is None:
            self.times.first_output = time.monotonic()
        self.times.output_items += 1
        self.times.output_bytes += descriptor.size_bytes

    def check(self) -> None:
        """Returns while the execution goes on."""
        self.note_progress(True)
        self._raise_if_ended()

    def give_up(self, failure: StageError) -> None:
        """Ends every wait of the run with a failure; from any thread."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    # --- called by the lane around the executor ---

    def finish(self) -> None:
        """Acknowledges what the executor still held and ends every output port.

        Raises:
            OutputContractError: an output port that is no stream did not get its item.
        """
        for entry in self._outputs.values():
            if not entry.port.is_stream and entry.sent != 1:
                raise OutputContractError(
                    f"stage {self.stage_id!r} ended without an item on {entry.port.name!r}"
                )
        for received in self._inputs.values():
            self._release_held(received)
        for name, entry in self._outputs.items():
            self._outbox.put(
                gateway.ExchangeMessage(
                    execution_id=self.execution_id,
                    end_of_port=gateway.EndOfPort(port=name, item_count=entry.sent),
                )
            )

    def _release_held(self, entry: _Input) -> None:
        size, entry.held_bytes = entry.held_bytes, None
        due = entry.due.add(1, size) if size is not None else None
        if due is not None:
            self._acknowledge(self.execution_id, entry.port.name, due.items, due.size_bytes)

    def _wait(self, is_ready: Callable[[], bool]) -> None:
        """Waits on the condition, which the caller holds, for a state or the end."""
        self._raise_if_ended()
        if not is_ready():
            began = time.monotonic()
            self.note_progress(False)
            while not is_ready():
                timeout = None if self.deadline is None else max(self.remaining_seconds, 0.0)
                self._changed.wait(timeout)
                self._raise_if_ended()
            self.times.waited_seconds += time.monotonic() - began
        self.note_progress(True)

    def _raise_if_ended(self) -> None:
        if self.is_cancelled:
            raise ExecutionEnded("cancelled")
        if self._failure is not None:
            raise self._failure
        if self.remaining_seconds <= 0:
            raise ExecutionEnded("deadline") from DeadlineExceededError(
                f"stage {self.stage_id!r} did not finish before the deadline"
            )
