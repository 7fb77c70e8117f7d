"""One execution as the function in a child sees it; what it asks for is done by the worker."""

import json
import math
import threading
import time
from collections.abc import Iterator
from typing import Final

from stagewire.credit import Credit
from stagewire.errors import DeadlineExceededError, StageError
from stagewire.tensor import Value
from stagewire.worker.child_wire import WINDOW_BYTES, WINDOW_ITEMS, ChildWire, Frame, Kind
from stagewire.worker.executor import ExecutionEnded

_STEP_SECONDS: Final = 0.05
"""Time between two notes that the function goes on, which it may say a thousand times a second."""


class ChildExecution:
    """Implements `Execution`. The thread that receives calls `take`; the function the rest."""

    session: None = None
    """A function in a child keeps nothing from one run to the next."""

    def __init__(self, wire: ChildWire, number: int, seconds_left: float | None) -> None:
        self._wire = wire
        self._number = number
        self._deadline = math.inf if seconds_left is None else time.monotonic() + seconds_left
        self._credit = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self._answer: Frame | None = None
        self._is_cancelled = False
        self._failure: StageError | None = None
        self._changed = threading.Condition()
        self._stepped_at = time.monotonic()

    def take(self, frame: Frame) -> None:
        """Takes what the worker says about this execution."""
        with self._changed:
            if frame.kind is Kind.CANCEL:
                self._is_cancelled = True
            elif frame.kind is Kind.CREDIT:
                fields = json.loads(frame.header)
                self._credit.grant(fields["items"], fields["bytes"])
            else:
                self._answer = frame
            self._changed.notify_all()

    @property
    def remaining_seconds(self) -> float:
        """Time until the deadline; infinite when there is none."""
        return self._deadline - time.monotonic()

    @property
    def has_ended(self) -> bool:
        """Whether it was cancelled or its deadline passed."""
        return self._is_cancelled or self.remaining_seconds <= 0

    def receive(self, port: str) -> Value | None:
        """Asks the worker for the next item of an input port; None after the last one."""
        self._raise_if_ended()
        self._send(Kind.WANT, port.encode())
        with self._changed:
            while self._answer is None:
                self._wait()
            answer, self._answer = self._answer, None
        return answer.item()[1] if answer.kind is Kind.ITEM else None

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""
        while (value := self.receive(port)) is not None:
            yield value

    def send(self, port: str, value: Value) -> None:
        """Hands one output item to the worker, which checks it and waits for credit.

        The function goes on meanwhile, until a few items are under way. An item that the worker
        refuses therefore ends the execution somewhat later, like a cancel.
        """
        with self._changed:
            self._raise_if_ended()
            while not self._credit.is_open:
                self._wait()
        size = self._wire.send_item(self._number, port, value)
        self._stepped_at = time.monotonic()
        with self._changed:
            self._credit.spend(size)

    def check(self) -> None:
        """Returns while the execution goes on."""
        self._raise_if_ended()
        if time.monotonic() - self._stepped_at >= _STEP_SECONDS:
            self._send(Kind.STEP)

    def give_up(self, failure: StageError) -> None:
        """Ends every wait of the run with a failure; from any thread."""
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def _send(self, kind: Kind, header: bytes = b"") -> None:
        self._wire.send(kind, self._number, header)
        self._stepped_at = time.monotonic()

    def _wait(self) -> None:
        """Waits on the condition, which the caller holds, for a change."""
        self._raise_if_ended()
        left = self.remaining_seconds
        self._changed.wait(None if left == math.inf else max(left, 0.0))
        self._raise_if_ended()

    def _raise_if_ended(self) -> None:
        if self._is_cancelled:
            raise ExecutionEnded("cancelled")
        if self._failure is not None:
            raise self._failure
        if self.remaining_seconds <= 0:
            raise ExecutionEnded("deadline") from DeadlineExceededError("the deadline passed")
