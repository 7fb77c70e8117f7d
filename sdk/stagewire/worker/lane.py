"""The lane of one stage: threads that run its executions first in, first out."""

import contextlib
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from stagewire import status
from stagewire.errors import DeadlineExceededError, StageError, StageFaultError
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_duration
from stagewire.worker.execution import LaneExecution, Times
from stagewire.worker.executor import Execution, ExecutionEnded, LoadedStage
from stagewire.worker.outbox import Outbox
from stagewire.worker.recorder import RECORDER
from stagewire.worker.turns import Turns

_log = logging.getLogger(__name__)

Ended = Callable[[LaneExecution, int], None]
"""Called on the lane's thread with an execution that holds nothing any more and the bytes freed."""


@dataclass(slots=True)
class Slot:
    """One place of a lane, with the progress of its thread; only ever written by that thread."""

    progress: int = 0
    is_busy: bool = False
    """Whether an executor runs and does not wait for input or credit."""

    def note(self, is_busy: bool) -> None:
        """Counts one step of an executor; `is_busy` says whether it now computes or waits."""
        self.progress += 1
        self.is_busy = is_busy


class Lane:
    """Runs the executions of one loaded stage, `concurrency` at a time, off the event loop."""

    def __init__(
        self,
        stage_id: str,
        stage: LoadedStage,
        concurrency: int,
        outbox: Outbox,
        ended: Ended,
        rest: Callable[[], None],
        turns: Turns | None = None,
        cores: Collection[int] = (),
    ) -> None:
        """Starts the threads; they run on the cores of the thread that calls.

        Args:
            stage_id: Name of the stage.
            stage: What runs its executions.
            concurrency: How many threads.
            outbox: Takes what executions send.
            ended: Is told of each execution that has ended.
            rest: Is called whenever nothing is queued any more.
            turns: Lets one thread compute at a time; without it they all do.
            cores: What its threads were kept to; empty for any.
        """
        self.stage_id = stage_id
        self.stage = stage
        self.cores = frozenset(cores)
        self.slots = tuple(Slot() for _ in range(concurrency))
        self._outbox = outbox
        self._ended = ended
        self._rest = rest
        self._turns = turns
        self._queue: deque[LaneExecution] = deque()
        self._is_closed = False
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(
                target=self._serve, args=(slot,), name=f"lane-{stage_id}-{number}", daemon=True
            )
            for number, slot in enumerate(self.slots)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, execution: LaneExecution) -> None:
        """Queues one execution."""
        with self._changed:
            self._queue.append(execution)
            self._changed.notify()

    def withdraw(self, execution: LaneExecution) -> bool:
        """Takes an execution out of the queue; says whether it was still there."""
        with self._changed:
            if execution in self._queue:
                self._queue.remove(execution)
                return True
        if self._turns is not None:
            # It may have been cancelled while it waits for its turn.
            self._turns.wake()
        return False

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The operating system's numbers of its threads."""
        return tuple(thread.native_id or 0 for thread in self._threads)

    def close(self) -> None:
        """Ends the threads after the executions that are queued; called off the loop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _serve(self, slot: Slot) -> None:
        while (execution := self._next()) is not None:
            execution.note_progress = slot.note
            slot.note(True)
            with RECORDER.executing(execution.execution_id):
                failure = self._run(execution, slot)
            slot.note(False)
            self._conclude(execution, failure)
            if not self._queue:
                self._rest()

    def _next(self) -> LaneExecution | None:
        """Waits for the next execution; None when the lane is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            return self._queue.popleft() if self._queue else None

    def _run(self, execution: LaneExecution, slot: Slot) -> StageError | None:
        """Runs one execution; returns why it failed. A cancelled one fails with no reason."""
        try:
            execution.check()
            with self._seated(execution, slot) as seated:
                execution.times.started = time.monotonic()
                self.stage.run(seated)
            execution.finish()
        except ExecutionEnded as ended:
            if execution.is_cancelled:
                return None
            cause = ended.__cause__
            return (
                cause
                if isinstance(cause, StageError)
                else DeadlineExceededError(f"stage {self.stage_id!r} ended at its deadline")
            )
        except StageError as error:
            return error
        except MemoryError:
            return StageFaultError(f"stage {self.stage_id!r} ran out of memory on its input")
        except BaseException:
            # The outermost edge of an executor: whatever it raises, SystemExit too, must not end
            # the lane.
            error_id = uuid.uuid4().hex[:12]
            _log.exception("execution failed stage=%s error_id=%s", self.stage_id, error_id)
            return StageFaultError(
                f"stage {self.stage_id!r} failed on its input (error id {error_id})",
                stage=self.stage_id,
                error_id=error_id,
            )
        return None

    def _seated(
        self, execution: LaneExecution, slot: Slot
    ) -> contextlib.AbstractContextManager[Execution]:
        """Returns what the executor gets; it takes turns where the lane does."""
        if self._turns is None:
            return contextlib.nullcontext(execution)
        return self._turns.seated(execution, slot.note)

    def _conclude(self, execution: LaneExecution, failure: StageError | None) -> None:
        freed = execution.drop_inputs()
        message = pb.ExchangeMessage(execution_id=execution.execution_id)
        if execution.is_cancelled:
            pass
        elif failure is not None:
            message.execution_failed.failure.CopyFrom(status.to_message(failure))
            self._outbox.put(message)
        else:
            message.execution_done.receipt.CopyFrom(receipt_of(execution.times))
            self._outbox.put(message)
        self._ended(execution, freed)


def receipt_of(times: Times) -> pb.ExecutionReceipt:
    """Returns the wire form of what an execution took."""
    now = time.monotonic()
    started = times.started if times.started is not None else now
    receipt = pb.ExecutionReceipt(
        queued=to_duration(started - times.created),
        busy=to_duration(now - started - times.waited_seconds),
        total=to_duration(now - times.created),
        input_bytes=times.input_bytes,
        output_bytes=times.output_bytes,
        input_items=times.input_items,
        output_items=times.output_items,
    )
    if times.first_output is not None:
        receipt.first_output.CopyFrom(to_duration(times.first_output - times.created))
    return receipt
