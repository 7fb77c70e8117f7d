"""The executions of one worker: begun, fed, credited and cancelled by the loop."""

import threading
import time

from stagewire import status
from stagewire.credit import Credit
from stagewire.errors import StageError, StageNotResidentError
from stagewire.limits import TOMBSTONE_SECONDS
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_seconds
from stagewire.worker.execution import LaneExecution
from stagewire.worker.link import ControlLink
from stagewire.worker.outbox import Outbox
from stagewire.worker.stages import Stages


class Executions:
    """Gives each message about an execution to it. Called on the loop, but for `note_ended`."""

    def __init__(self, control: ControlLink, outbox: Outbox) -> None:
        self._control = control
        self._outbox = outbox
        self._running: dict[int, LaneExecution] = {}
        self._tombstones: dict[int, float] = {}
        self._ended = threading.Condition()

    def take(self, message: pb.ExchangeMessage, payload: memoryview, stages: Stages) -> None:
        """Takes one message of Exchange; what is wrong with it fails its execution alone."""
        kind = message.WhichOneof("message")
        try:
            if kind == "start_execution":
                self._begin(message.execution_id, message.start_execution, stages)
                return
            execution = self._running.get(message.execution_id)
            if execution is None:
                # Items of an execution that failed or was cancelled may still be under way.
                return
            if kind == "item":
                execution.push(message.item, payload)
            elif kind == "end_of_port":
                execution.end(message.end_of_port.port)
        except StageError as error:
            self._fail(message.execution_id, error, stages)

    def grant(self, grant: pb.CreditGrant) -> None:
        """Gives credit to an output of an execution."""
        execution = self._running.get(grant.execution_id)
        if execution is not None:
            execution.grant(grant.port, grant.items, grant.size_bytes)

    def cancel(self, execution_id: int, stages: Stages) -> None:
        """Ends an execution early; one that has not begun yet never will."""
        execution = self._running.get(execution_id)
        if execution is not None:
            self._stop(execution, stages)
            return
        now = time.monotonic()
        self._tombstones = {key: until for key, until in self._tombstones.items() if until > now}
        self._tombstones[execution_id] = now + TOMBSTONE_SECONDS

    def note_ended(self, execution: LaneExecution, freed_bytes: int) -> None:
        """Notes that an execution holds nothing any more; from any thread."""
        with self._ended:
            was_known = self._running.pop(execution.execution_id, None) is not None
            self._ended.notify_all()
        if execution.is_cancelled and was_known:
            self._acknowledge_cancel(execution.execution_id, freed_bytes)

    def wait_until_none(self, timeout_seconds: float) -> None:
        """Waits until nothing runs; off the loop."""
        with self._ended:
            self._ended.wait_for(lambda: not self._running, timeout_seconds)

    def _begin(self, execution_id: int, start: pb.StartExecution, stages: Stages) -> None:
        if self._tombstones.pop(execution_id, None) is not None:
            self._acknowledge_cancel(execution_id, 0)
            return
        lane = stages.lanes.get(start.stage_id)
        if lane is None:
            raise StageNotResidentError(f"stage {start.stage_id!r} is not loaded")
        deadline = None
        if start.HasField("time_left"):
            deadline = time.monotonic() + to_seconds(start.time_left)
        execution = LaneExecution(
            execution_id,
            stages.orders[start.stage_id],
            deadline=deadline,
            credits={grant.port: Credit(grant.items, grant.size_bytes) for grant in start.credits},
            outbox=self._outbox,
            acknowledge=self._acknowledge,
            session=stages.sessions.of(start.stage_id, start.session_id),
        )
        self._running[execution_id] = execution
        lane.put(execution)

    def _fail(self, execution_id: int, error: StageError, stages: Stages) -> None:
        execution = self._running.pop(execution_id, None)
        if execution is not None:
            self._stop(execution, stages)
        self._outbox.put(
            pb.ExchangeMessage(
                execution_id=execution_id,
                execution_failed=pb.ExecutionFailed(failure=status.to_message(error)),
            )
        )

    def _stop(self, execution: LaneExecution, stages: Stages) -> None:
        execution.cancel()
        lane = stages.lanes.get(execution.stage_id)
        # One that waits in the queue would hold its inputs until those before it have ended.
        if lane is not None and lane.withdraw(execution):
            self.note_ended(execution, execution.drop_inputs())

    def _acknowledge(self, execution_id: int, port: str, items: int, size_bytes: int) -> None:
        self._control.put_threadsafe(
            pb.AttachRequest(
                credit_grant=pb.CreditGrant(
                    execution_id=execution_id, port=port, items=items, size_bytes=size_bytes
                )
            )
        )

    def _acknowledge_cancel(self, execution_id: int, freed_bytes: int) -> None:
        self._control.put_threadsafe(
            pb.AttachRequest(
                execution_cancelled=pb.ExecutionCancelled(
                    execution_id=execution_id, freed_bytes=freed_bytes
                )
            )
        )
