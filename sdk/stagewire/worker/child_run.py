"""One execution of a stage in a child, on the lane's thread of the worker: does what it asks for.

The child asks for each item and hands over each output; the thread receives and sends in its place.
So credit, cancels, deadlines and the rules of ports hold as they do without a child, and a child
that computes without a word is seen by the watchdog as a stage that does.
"""

import json
import math
import queue
import time
from collections.abc import Callable
from typing import Final, Protocol

from stagewire.credit import Credit
from stagewire.errors import StageError, StageHungError
from stagewire.worker.child_wire import (
    TICK_SECONDS,
    WINDOW_BYTES,
    WINDOW_ITEMS,
    ChildWire,
    Frame,
    Kind,
    WireError,
    no_longer_than,
)
from stagewire.worker.executor import Execution, ExecutionEnded

CANCEL_SECONDS: Final = 5.0
"""Time that a cancelled function has to come to its next step, before its process is killed."""
_SLEPT_SECONDS: Final = 1.0
"""A look that comes so late after the last says that this process was stopped, not the child."""


class Peer(Protocol):
    """The child as its runs see it."""

    @property
    def wire(self) -> ChildWire:
        """Where frames are sent."""

    def kill(self) -> None:
        """Ends the process at once."""

    def loss(self) -> StageError:
        """Waits until the process has ended; returns the failure of what it held."""


class ChildRun:
    """One execution."""

    def __init__(
        self, number: int, execution: Execution, peer: Peer, stage_id: str, hang_seconds: float
    ) -> None:
        self._number = number
        self._execution = execution
        self._peer = peer
        self._stage_id = stage_id
        self._hang_seconds = hang_seconds
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._has_last = False
        self._is_over = False
        self._due = Credit(0, 0)
        """Of what the child sent, and was not given back yet."""
        self._note_step()

    # --- the thread that reads ---

    def put(self, frame: Frame) -> None:
        """Takes what the child says about this execution."""
        self._has_last = self._has_last or frame.kind.is_last
        self._frames.put(frame)

    def lose(self, failure: StageError) -> None:
        """Notes that the child is gone."""
        self._frames.put(None)
        if not self._has_last:
            # It may wait for input, which can take as long as a client likes.
            self._execution.give_up(failure)

    # --- the lane's thread ---

    def go(self) -> None:
        """Runs the execution to its end.

        Raises:
            ExecutionEnded: it was cancelled or its deadline passed.
            StageError: it failed, or its child was lost.
        """
        try:
            left = self._execution.remaining_seconds
            fields = {"seconds_left": None if left == math.inf else left}
            self._send(
                lambda: self._peer.wire.send(
                    Kind.START, self._number, json.dumps(fields).encode(), waiting=self._look
                )
            )
            while not self._is_over:
                frame = self._next()
                self._note_step()
                try:
                    self._answer(frame)
                except WireError:
                    self._break()
                self._note_step()
        finally:
            if not self._is_over:
                self._stop()

    def _next(self) -> Frame:
        while True:
            try:
                frame = self._frames.get(timeout=TICK_SECONDS)
            except queue.Empty:
                self._look()
                continue
            if frame is None:
                self._is_over = True
                raise self._peer.loss()
            return frame

    def _answer(self, frame: Frame) -> None:
        execution = self._execution
        if frame.kind is Kind.WANT:
            port = frame.text()
            value = execution.receive(port)
            if value is None:
                self._send(lambda: self._peer.wire.send(Kind.END, self._number))
            else:
                self._send(
                    lambda: self._peer.wire.send_item(self._number, port, value, waiting=self._look)
                )
        elif frame.kind is Kind.ITEM:
            execution.send(*frame.item())
            self._give_back(frame.payload.nbytes)
        elif frame.kind is Kind.STEP:
            execution.check()
        elif frame.kind is Kind.DONE:
            self._is_over = True
        elif frame.kind is Kind.FAILED:
            self._is_over = True
            raise frame.failure()
        elif frame.kind is Kind.ENDED:
            self._is_over = True
            execution.check()
            # Its clock was a little ahead.
            raise ExecutionEnded("the child saw the deadline pass")
        else:
            self._break()

    def _give_back(self, size_bytes: int) -> None:
        """Gives credit back once half a window is due: fewer frames, and the child never waits."""
        self._due.items += 1
        self._due.size_bytes += size_bytes
        if self._due.items * 2 < WINDOW_ITEMS and self._due.size_bytes * 2 < WINDOW_BYTES:
            return
        due, self._due = self._due, Credit(0, 0)
        header = json.dumps({"items": due.items, "bytes": due.size_bytes}).encode()
        self._send(lambda: self._peer.wire.send(Kind.CREDIT, self._number, header))

    def _send(self, send: Callable[[], object]) -> None:
        try:
            send()
        except WireError:
            self._break()

    def _break(self) -> None:
        """Gives the child up: it is gone, or what it says makes no sense."""
        self._is_over = True
        self._peer.kill()
        raise self._peer.loss()

    def _note_step(self) -> None:
        self._looked_at = self._stepped_at = time.monotonic()

    def _look(self) -> None:
        """Looks, between two frames, whether the execution ended or the child hangs."""
        now = time.monotonic()
        gap, self._looked_at = now - self._looked_at, now
        if gap > _SLEPT_SECONDS:
            self._stepped_at += gap
        if self._execution.has_ended:
            self._execution.check()
        silence = now - self._stepped_at
        if silence > self._hang_seconds:
            self._is_over = True
            self._peer.kill()
            raise StageHungError(
                f"stage {self._stage_id!r} made no step for {silence:.1f} s and was ended;"
                " it is started again",
                stage=self._stage_id,
            )

    def _stop(self) -> None:
        """Has the child end the execution, or ends the child."""
        until = time.monotonic() + min(CANCEL_SECONDS, self._hang_seconds)

        try:
            self._peer.wire.send(Kind.CANCEL, self._number, waiting=no_longer_than(until))
            while True:
                frame = self._frames.get(timeout=max(until - time.monotonic(), 0.0))
                if frame is None or frame.kind.is_last:
                    return
        except (WireError, queue.Empty):
            self._peer.kill()
