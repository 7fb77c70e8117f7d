"""The turn of a realtime stage: several executions run on threads, one of them computes."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from stagewire.errors import StageError
from stagewire.playback import Playback
from stagewire.ports import Port
from stagewire.tensor import Value
from stagewire.worker.execution import LaneExecution
from stagewire.worker.executor import Session
from stagewire.worker.pace import Claim, Steps, gives_way, next_claim, played_elements


class Seat:
    """An execution that takes turns."""

    def __init__(self, execution: LaneExecution, note: Callable[[bool], None], rate: float) -> None:
        self.execution = execution
        self.note = note
        """Counts a step of the execution's thread and says whether it computes."""
        self.playback = Playback(rate)
        self.is_given_up = False
        self.waiting_since = 0.0
        self.step_began = 0.0


class Turns:
    """Gives the turn of one stage to the execution whose listener has the least ahead.

    A turn is given on only where an execution waits, sends or receives: between two steps.
    """

    def __init__(self, port: Port, per_second: float) -> None:
        self._port = port
        self._per_second = per_second
        self._steps = Steps()
        self._holder: Seat | None = None
        self._waiting: list[Seat] = []
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def seated(
        self, execution: LaneExecution, note: Callable[[bool], None]
    ) -> Iterator["PacedExecution"]:
        """Waits for the turn and gives it back at the end of the block.

        Raises:
            ExecutionEnded: the execution was cancelled or its deadline passed.
        """
        seat = Seat(execution, note, self._per_second)

        def note_step(is_busy: bool) -> None:
            note(is_busy)
            if not is_busy:
                # It waits for input or credit, which may take as long as a client likes.
                self._leave(seat)

        execution.note_progress = note_step
        try:
            self.take(seat)
            yield PacedExecution(execution, self, seat)
        finally:
            execution.note_progress = note
            self._leave(seat)

    def wake(self) -> None:
        """Has every execution that waits look whether it was cancelled."""
        with self._changed:
            self._changed.notify_all()

    # --- between two steps, on the thread of the execution ---

    def note_output(self, seat: Seat, port: str, value: Value) -> None:
        """Notes an item that has left."""
        if port != self._port.name:
            return
        now = time.monotonic()
        with self._changed:
            seat.playback.add(played_elements(self._port, value), now)
            if self._holder is seat:
                self._steps.note(now - seat.step_began)
                seat.step_began = now

    def take(self, seat: Seat) -> None:
        """Returns with the turn; whoever has it gives it on first where that is better.

        Raises:
            ExecutionEnded: the execution was cancelled or its deadline passed.
        """
        with self._changed:
            now = time.monotonic()
            if self._holder is seat:
                slack = seat.playback.slack(now)
                if not gives_way(slack, self._steps.longest_seconds, self._claims(now)):
                    return
                self._holder = None
                # Chosen among the others: an equal slack must not bring it back at once.
                self._grant(now)
            seat.waiting_since = now
            self._waiting.append(seat)
            if self._holder is None:
                self._grant(now)
            if self._holder is not seat:
                self._wait(seat, now)
            seat.step_began = time.monotonic()
        # Not under the lock: it counts the step, and raises where the execution has ended.
        seat.execution.check()

    def _wait(self, seat: Seat, began: float) -> None:
        execution = seat.execution
        seat.note(False)
        while not (self._holder is seat or seat.is_given_up or execution.has_ended):
            left = execution.remaining_seconds
            self._changed.wait(None if execution.deadline is None else max(left, 0.0))
        if seat in self._waiting:
            self._waiting.remove(seat)
        if execution.times.started is not None:
            # Before that it counts as queued.
            execution.times.waited_seconds += time.monotonic() - began

    def _leave(self, seat: Seat) -> None:
        with self._changed:
            if self._holder is seat:
                self._holder = None
                self._grant(time.monotonic())

    def _claims(self, now: float) -> list[Claim]:
        return [Claim(seat.playback.slack(now), now - seat.waiting_since) for seat in self._waiting]

    def _grant(self, now: float) -> None:
        if self._waiting:
            self._holder = self._waiting.pop(next_claim(self._claims(now)))
            self._changed.notify_all()


class PacedExecution:
    """An execution that takes turns with others; implements `Execution`."""

    def __init__(self, execution: LaneExecution, turns: Turns, seat: Seat) -> None:
        self._execution = execution
        self._turns = turns
        self._seat = seat

    @property
    def remaining_seconds(self) -> float:
        """Time until the deadline; infinite when there is none."""
        return self._execution.remaining_seconds

    @property
    def has_ended(self) -> bool:
        """Whether it was cancelled or its deadline passed."""
        return self._execution.has_ended

    @property
    def session(self) -> Session | None:
        """What the stage keeps for the session of the request."""
        return self._execution.session

    def receive(self, port: str) -> Value | None:
        """Waits for the next item of an input port, then for the turn."""
        value = self._execution.receive(port)
        self._turns.take(self._seat)
        return value

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""
        while (value := self.receive(port)) is not None:
            yield value

    def send(self, port: str, value: Value) -> None:
        """Sends one item on an output port, then lets another one compute where that is better."""
        self._execution.send(port, value)
        self._turns.note_output(self._seat, port, value)
        self._turns.take(self._seat)

    def check(self) -> None:
        """Returns while the execution goes on."""
        self._execution.check()

    def give_up(self, failure: StageError) -> None:
        """Ends every wait of the run with a failure; from any thread."""
        self._execution.give_up(failure)
        self._seat.is_given_up = True
        self._turns.wake()
