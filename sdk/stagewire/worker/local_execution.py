"""An execution in memory: its other side is a caller, on this thread or another, and no wire.

It proves a stage before it is ready, and carries the conformance suite of executors.
"""

import hashlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from stagewire.errors import OutputContractError, StageError, TensorMismatchError
from stagewire.tensor import Value, encode
from stagewire.worker.executor import ExecutionEnded, LoadedStage, Session, StageOrder


class LocalExecution:
    """Implements `Execution`.

    The caller uses `feed`, `end`, `grant`, `cancel` and `take`; the executor uses the rest.
    `credit` is the number of items that each output may send before `grant`; None for any number.
    A run that has sent `most_bytes` fails when it sends more: what it sends is kept.
    Once every stream has `enough_items` and every other output its item, the run is cancelled.
    """

    def __init__(
        self,
        order: StageOrder,
        *,
        credit: int | None = None,
        most_bytes: int | None = None,
        enough_items: int | None = None,
        deadline_seconds: float = math.inf,
        refuses_outputs: bool = False,
        session: Session | None = None,
    ) -> None:
        self.session = session
        self._order = order
        self._inputs = {port.name: port for port in order.inputs}
        self._outputs = {port.name: port for port in order.outputs}
        self._waiting: dict[str, deque[Value]] = {name: deque() for name in self._inputs}
        self._has_ended = dict.fromkeys(self._inputs, False)
        self._sent: dict[str, list[tuple[Value, bytes]]] = {name: [] for name in self._outputs}
        self._taken = dict.fromkeys(self._outputs, 0)
        self._credit = dict.fromkeys(self._outputs, math.inf if credit is None else credit)
        self._bytes_left = math.inf if most_bytes is None else most_bytes
        self._enough_items = enough_items
        self._deadline = time.monotonic() + deadline_seconds
        self._refuses_outputs = refuses_outputs
        self._is_cancelled = False
        self._is_over = False
        self._failure: StageError | None = None
        self._changed = threading.Condition()

    # --- the caller's side ---

    def feed(self, port: str, value: Value) -> None:
        """Sends one item to an input port; arrays arrive as read-only copies."""
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        descriptor, _ = encode(value)
        self._inputs[port].check(descriptor)
        with self._changed:
            self._waiting[port].append(value)
            self._changed.notify_all()

    def end(self, *ports: str) -> None:
        """Ends input ports; all of them when none is named."""
        with self._changed:
            for port in ports or self._inputs:
                self._has_ended[port] = True
            self._changed.notify_all()

    def feed_all(self, inputs: Mapping[str, Sequence[Value]]) -> None:
        """Feeds items to every port and ends all of them."""
        for port, values in inputs.items():
            for value in values:
                self.feed(port, value)
        self.end()

    def grant(self, items: int) -> None:
        """Lets each output send more items."""
        with self._changed:
            for port in self._credit:
                self._credit[port] += items
            self._changed.notify_all()

    def cancel(self) -> None:
        """Ends the execution early."""
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()

    def take(self, port: str, timeout_seconds: float) -> Value | None:
        """Waits for the next item of an output port; None when the run ends without one.

        Raises:
            TimeoutError: neither came in time.
        """
        with self._changed:
            index = self._taken[port]
            came = self._changed.wait_for(
                lambda: len(self._sent[port]) > index or self._is_over, timeout_seconds
            )
            if not came:
                raise TimeoutError(
                    f"nothing came out of port {port!r} within {timeout_seconds:.0f} s"
                )
            if len(self._sent[port]) <= index:
                return None
            self._taken[port] += 1
            return self._sent[port][index][0]

    @property
    def outputs(self) -> dict[str, list[Value]]:
        """Everything that was sent so far."""
        with self._changed:
            return {port: [value for value, _ in sent] for port, sent in self._sent.items()}

    def conclude(self) -> None:
        """Checks what holds after a run that returned.

        Raises:
            OutputContractError: an item changed after it was sent, or a port did not get its item.
        """
        for port, sent in self._sent.items():
            if any(_digest(encode(value)[1]) != digest for value, digest in sent):
                raise OutputContractError(f"an item of {port!r} changed once sent")
            if not sent and not self._outputs[port].is_stream:
                raise OutputContractError(f"the stage ended without an item on {port!r}")

    def run(self, stage: LoadedStage) -> None:
        """Runs a stage on this thread."""
        try:
            stage.run(self)
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    # --- the executor's side ---

    @property
    def remaining_seconds(self) -> float:
        """Time until the deadline."""
        return self._deadline - time.monotonic()

    @property
    def has_ended(self) -> bool:
        """Whether it was cancelled or its deadline passed."""
        return self._is_cancelled or self.remaining_seconds <= 0

    def receive(self, port: str) -> Value | None:
        """Waits for the next item of an input port; None after the last one."""
        with self._changed:
            self._wait(lambda: bool(self._waiting[port]) or self._has_ended[port])
            return self._waiting[port].popleft() if self._waiting[port] else None

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""
        while (value := self.receive(port)) is not None:
            yield value

    def send(self, port: str, value: Value) -> None:
        """Keeps one output item, waiting for credit."""
        if port not in self._outputs:
            raise OutputContractError(f"the stage has no output port {port!r}")
        if self._refuses_outputs:
            raise OutputContractError(f"port {port!r} refuses every item, as it was told to")
        descriptor, payload = encode(value)
        try:
            self._outputs[port].check(descriptor)
        except TensorMismatchError as error:
            raise OutputContractError(error.message) from error
        if self._sent[port] and not self._outputs[port].is_stream:
            raise OutputContractError(f"port {port!r} is no stream and got a second item")
        with self._changed:
            self._wait(lambda: self._credit[port] > 0)
            if self._bytes_left <= 0:
                raise OutputContractError(f"port {port!r} sent more than may be kept")
            self._credit[port] -= 1
            self._bytes_left -= descriptor.size_bytes
            self._sent[port].append((value, _digest(payload)))
            self._is_cancelled = self._is_cancelled or self._is_enough()
            self._changed.notify_all()

    def _is_enough(self) -> bool:
        if self._enough_items is None:
            return False
        return all(
            len(self._sent[port]) >= (self._enough_items if rules.is_stream else 1)
            for port, rules in self._outputs.items()
        )

    def check(self) -> None:
        """Returns while the execution goes on."""
        with self._changed:
            self._raise_if_ended()

    def give_up(self, failure: StageError) -> None:
        """Ends every wait of the run with a failure; from any thread."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def _wait(self, is_ready: Callable[[], bool]) -> None:
        self._raise_if_ended()
        while not is_ready():
            remaining = self.remaining_seconds
            self._changed.wait(None if remaining == math.inf else max(remaining, 0.0))
            self._raise_if_ended()

    def _raise_if_ended(self) -> None:
        if self._is_cancelled:
            raise ExecutionEnded("cancelled")
        if self._failure is not None:
            raise self._failure
        if self.remaining_seconds <= 0:
            raise ExecutionEnded("deadline")


def _digest(payload: memoryview) -> bytes:
    return hashlib.sha256(payload).digest()
