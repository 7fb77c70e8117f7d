"""One child, from its start to its end, as its worker sees it."""

import contextlib
import json
import math
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from stagewire.errors import LoadFailedError, StageError, StageHungError, StageLostError
from stagewire.tensor import Value
from stagewire.worker.child_order import ChildOrder
from stagewire.worker.child_process import ChildProcess
from stagewire.worker.child_run import ChildRun
from stagewire.worker.child_wire import ChildWire, Frame, Kind, WireError, no_longer_than
from stagewire.worker.executor import Execution, Progress, StageOrder

Listener = TypeVar("Listener")
_LEAVE_SECONDS: Final = 5.0
"""Time that a child has to leave by itself, before it is killed."""
_CLOSED_SECONDS: Final = 0.2
"""The same for one whose socket has closed, which happens while it ends."""


class ChildPeer:
    """One child. `load`, `follow` and `end` belong to the thread that started it."""

    def __init__(self, process: ChildProcess, order: StageOrder) -> None:
        self._process = process
        self._order = order
        self.wire = ChildWire(process.connection)
        self._lock = threading.Lock()
        self._runs: dict[int, ChildRun] = {}
        self._examples: dict[int, queue.SimpleQueue[Frame | None]] = {}
        self._count = 0
        self._is_leaving = False
        self._is_killed = False
        self._loss: StageError | None = None
        self._has_ended = threading.Event()

    # --- the thread that started it ---

    def load(
        self, order: ChildOrder, progress: Progress, most_seconds: float | None
    ) -> Mapping[str, str]:
        """Has the child load its stage; returns its thread settings.

        Raises:
            StageError: it could not, or ended, or took too long.
        """
        until = None if most_seconds is None else time.monotonic() + most_seconds

        def look() -> None:
            if until is not None and time.monotonic() > until:
                self._process.kill()

        with contextlib.suppress(WireError):
            self.wire.send(Kind.LOAD, header=order.to_json(), waiting=look)
            while (frame := self.wire.receive(look)) is not None:
                if frame.kind is Kind.PHASE:
                    progress(frame.text())
                elif frame.kind is Kind.LOADED:
                    return _settings(frame)
                elif frame.kind is Kind.FAILED:
                    raise frame.failure()
                else:
                    break
        raise LoadFailedError(
            f"the process of stage {self._order.stage_id!r} ended while it loaded: {self._reap()}",
            stage=self._order.stage_id,
        )

    def follow(self) -> None:
        """Passes on what the child says until it is gone, or says something that is no frame."""
        with contextlib.suppress(WireError):
            while (frame := self.wire.receive()) is not None:
                with self._lock:
                    run = self._runs.get(frame.execution)
                    example = self._examples.get(frame.execution)
                if run is not None:
                    run.put(frame)
                elif example is not None:
                    example.put(frame)

    def end(self) -> str:
        """Waits for the end of the process, and fails what it held; returns how it ended."""
        how = self._reap()
        # One that cannot be killed waits for a driver or a disk; those who wait for it need not.
        failure = StageLostError(
            f"the process of stage {self._order.stage_id!r} ended while it held the request:"
            f" {how or 'it was killed and does not end'}; it is started again",
            stage=self._order.stage_id,
        )
        with self._lock:
            self._loss = failure
            runs, examples = list(self._runs.values()), list(self._examples.values())
        self._has_ended.set()
        for run in runs:
            run.lose(failure)
        for example in examples:
            example.put(None)
        self.wire.close()
        while how is None:
            how = self._process.wait(_LEAVE_SECONDS)
        return how

    def _reap(self) -> str | None:
        how = self._process.wait(_LEAVE_SECONDS if self._is_leaving else _CLOSED_SECONDS)
        if how is None:
            self._process.kill()
            how = self._process.wait(_LEAVE_SECONDS)
        return how

    # --- any thread ---

    @property
    def is_ending(self) -> bool:
        """Whether it takes no more executions."""
        return self._is_killed or self._loss is not None

    def run(self, execution: Execution, hang_seconds: float) -> None:
        """Runs one execution in the child.

        Raises:
            StageError: it failed, or the child is gone.
            ExecutionEnded: it was cancelled or its deadline passed.
        """
        number = self._next_number()
        run = ChildRun(number, execution, self, self._order.stage_id, hang_seconds)
        with self._registered(self._runs, number, run):
            run.go()

    def example(self, most_seconds: float) -> Mapping[str, Sequence[Value]]:
        """Returns the example of the stage.

        Raises:
            StageError: the child has none, or is gone.
        """
        number = self._next_number()
        frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        items: dict[str, list[Value]] = {}
        with self._registered(self._examples, number, frames):
            try:
                self.wire.send(Kind.EXAMPLE, number)
                while (frame := self._next_of(frames, most_seconds)).kind is Kind.ITEM:
                    port, value = frame.item()
                    items.setdefault(port, []).append(value)
                if frame.kind is Kind.FAILED:
                    raise frame.failure()
                return {port: items.get(port, []) for port in json.loads(frame.text())}
            except WireError:
                self.kill()
                raise self.loss() from None

    def release(self) -> None:
        """Has the child release its stage and leave; ends it when it does not."""
        until = time.monotonic() + _LEAVE_SECONDS

        self._is_leaving = True
        with contextlib.suppress(WireError):
            self.wire.send(Kind.RELEASE, waiting=no_longer_than(until))
        if self._process.wait(max(until - time.monotonic(), 0.0)) is None:
            self.kill()

    def kill(self) -> None:
        """Ends the process at once."""
        self._is_killed = True
        self._process.kill()

    def loss(self) -> StageError:
        """Waits until the process has ended; returns the failure of what it held."""
        self._has_ended.wait()
        if self._loss is None:
            raise RuntimeError("a child ended without a failure")
        return self._loss

    def _next_number(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    @contextlib.contextmanager
    def _registered(
        self, table: dict[int, Listener], number: int, entry: Listener
    ) -> Iterator[None]:
        """Has frames about one number passed on to `entry` during the block."""
        with self._lock:
            if self._loss is not None:
                raise self._loss
            table[number] = entry
        try:
            yield
        finally:
            with self._lock:
                del table[number]

    def _next_of(self, frames: "queue.SimpleQueue[Frame | None]", most_seconds: float) -> Frame:
        try:
            frame = frames.get(timeout=None if most_seconds == math.inf else most_seconds)
        except queue.Empty:
            self.kill()
            raise StageHungError(
                f"stage {self._order.stage_id!r} gave no example within {most_seconds:.1f} s",
                stage=self._order.stage_id,
            ) from None
        if frame is None:
            raise self.loss()
        return frame


def _settings(frame: Frame) -> Mapping[str, str]:
    settings: dict[str, str] = json.loads(frame.text())
    return settings
