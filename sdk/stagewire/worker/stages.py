"""The stages of one worker: loaded, proved and released one at a time, each with its lane."""

import contextlib
import json
import logging
import math
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from stagewire import ports, status
from stagewire.errors import (
    CapabilityMissingError,
    LoadFailedError,
    StageError,
    StageNotResidentError,
)
from stagewire.limits import TENSOR_BYTES
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds
from stagewire.worker.affinity import attest_cores, kept_to, make_affinity
from stagewire.worker.executor import ExecutionEnded, Executor, LoadedStage, StageOrder
from stagewire.worker.lane import Ended, Lane
from stagewire.worker.local_execution import LocalExecution
from stagewire.worker.memory import MemoryMeter
from stagewire.worker.order import find_port
from stagewire.worker.outbox import Outbox
from stagewire.worker.sessions import SessionStates
from stagewire.worker.turns import Turns

_log = logging.getLogger(__name__)
_ENOUGH_ITEMS: Final = 4


class Stages:
    """What this worker has loaded. `load`, `prove` and `release` block: call them off the loop."""

    def __init__(
        self, executors: Sequence[Executor], outbox: Outbox, meter: MemoryMeter, ended: Ended
    ) -> None:
        self._executors = {executor.name: executor for executor in executors}
        self._outbox = outbox
        self._meter = meter
        self._ended = ended
        self._affinity = make_affinity()
        self.lanes: dict[str, Lane] = {}
        self.orders: dict[str, StageOrder] = {}
        self.sessions = SessionStates()

    @property
    def model_files(self) -> frozenset[str]:
        """Paths of the files of every loaded artifact."""
        return frozenset(
            str(path) for order in list(self.orders.values()) for path in order.files.values()
        )

    def load(self, message: pb.LoadStage, report: Callable[[str], None]) -> pb.AttachRequest:
        """Loads a stage; returns StageLoaded or Fault."""
        began = time.monotonic()
        try:
            order = to_order(message)
            executor = self._executor(order.executor)
            files = self.model_files | {str(path) for path in order.files.values()}
            before = self._meter.measure(files)
            # Threads that a library starts while it loads are born where the lane's threads are.
            turns = to_turns(message, order)
            with kept_to(self._affinity, message.cores, order.stage_id):
                stage = executor.load(order, report)
                lane = Lane(
                    order.stage_id,
                    stage,
                    order.concurrency,
                    self._outbox,
                    self._ended,
                    self._meter.trim,
                    turns,
                    message.cores,
                )
            cores = self._attested(message, lane)
        except Exception as error:  # the outermost edge of an executor: the worker must answer
            return fault(message.stage_id, "could not be loaded", error)
        # What the load used for a moment is given back, or it would count as the stage's own.
        self._meter.trim()
        after = self._meter.measure(files)
        self.orders[order.stage_id] = order
        self.lanes[order.stage_id] = lane
        return pb.AttachRequest(
            stage_loaded=pb.StageLoaded(
                stage_id=order.stage_id,
                measured_bytes=max(0, after.total_bytes - before.total_bytes),
                duration=to_duration(time.monotonic() - began),
                thread_settings=[
                    capability_pb2.ThreadSetting(name=name, value=value)
                    for name, value in {**stage.thread_settings, **cores}.items()
                ],
                anonymous_before_bytes=before.anonymous_pss_bytes,
                anonymous_after_bytes=after.anonymous_pss_bytes,
            )
        )

    def _attested(self, message: pb.LoadStage, lane: Lane) -> dict[str, str]:
        try:
            return attest_cores(self._affinity, message.cores, lane.thread_ids, lane.stage_id)
        except LoadFailedError:
            lane.close()
            lane.stage.release()
            raise

    def _executor(self, name: str) -> Executor:
        executor = self._executors.get(name)
        if executor is None:
            raise CapabilityMissingError(
                f"this worker has no executor {name!r}; it has {', '.join(sorted(self._executors))}"
            )
        return executor

    def prove(self, stage_id: str) -> pb.AttachRequest:
        """Runs a stage on its example items; returns StageProved or Fault."""
        began = time.monotonic()
        lane, order = self.lanes.get(stage_id), self.orders.get(stage_id)
        if lane is None or order is None:
            return fault(stage_id, "is not loaded", StageNotResidentError("load it first"))
        try:
            with kept_to(self._affinity, lane.cores, stage_id):
                sent = prove_stage(lane.stage, order)
        except Exception as error:  # the outermost edge of an executor: the worker must answer
            return fault(stage_id, "could not run its example", error)
        self._meter.trim()
        # Only the fake says so; no other stage needs to say that it is none.
        is_pretended = getattr(lane.stage, "is_pretended", False)
        ran = "pretended" if is_pretended else "ran its example on the CPU, its only device"
        return pb.AttachRequest(
            stage_proved=pb.StageProved(
                stage_id=stage_id,
                verdict=capability_pb2.VERDICT_FULL,
                grade=capability_pb2.GRADE_B,
                evidence=f"{ran}: {sent}",
                duration=to_duration(time.monotonic() - began),
            )
        )

    def release(self, stage_id: str) -> pb.AttachRequest:
        """Releases a stage; returns StageReleased or Fault."""
        before = self._meter.measure(self.model_files).total_bytes
        lane = self.lanes.pop(stage_id, None)
        self.orders.pop(stage_id, None)
        if lane is None:
            return fault(stage_id, "is not loaded", StageNotResidentError("load it first"))
        lane.close()
        self.sessions.release_stage(stage_id)
        lane.stage.release()
        self._meter.trim()
        freed = before - self._meter.measure(self.model_files).total_bytes
        return pb.AttachRequest(
            stage_released=pb.StageReleased(stage_id=stage_id, freed_bytes=max(0, freed))
        )

    def release_session(self, session_id: str) -> pb.AttachRequest:
        """Frees what every stage keeps for a session; returns SessionReleased."""
        kept = self.sessions.release_session(session_id)
        return pb.AttachRequest(
            session_released=pb.SessionReleased(session_id=session_id, stages=kept)
        )


def prove_stage(stage: LoadedStage, order: StageOrder) -> str:
    """Runs a stage on its example items; returns what came out, for people.

    Raises:
        StageError: it failed, or what came out breaks the rules of its ports.
    """
    # A few items prove a stage that could go on for long, and that a cancel ends it.
    execution = LocalExecution(order, most_bytes=TENSOR_BYTES, enough_items=_ENOUGH_ITEMS)
    execution.feed_all(stage.example())
    with contextlib.suppress(ExecutionEnded):
        execution.run(stage)
    execution.conclude()
    counts = ", ".join(f"{len(values)} on {name}" for name, values in execution.outputs.items())
    return f"items out: {counts or 'none'}"


def to_order(message: pb.LoadStage) -> StageOrder:
    """Returns an order from its wire form.

    Raises:
        LoadFailedError: the options are not a JSON object.
    """
    root = Path(message.artifact_root)
    try:
        options = json.loads(message.options_json or "{}")
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise LoadFailedError(f"the options of stage {message.stage_id!r} are no JSON object")
    order = StageOrder(message.stage_id, message.executor, message.device)
    return replace(
        order,
        artifact_format=message.artifact_format,
        files={file.path: root / file.path for file in message.files},
        function=message.function,
        options=options,
        inputs=tuple(map(ports.from_message, message.inputs)),
        outputs=tuple(map(ports.from_message, message.outputs)),
        thread_count=message.thread_count or 1,
        concurrency=message.concurrency or 1,
        budget_bytes=max(message.load_peak_bytes, message.resident_bytes)
        + message.per_request_bytes * (message.concurrency or 1),
        hang_timeout_seconds=(
            to_seconds(message.hang_timeout) if message.HasField("hang_timeout") else math.inf
        ),
    )


def to_turns(message: pb.LoadStage, order: StageOrder) -> Turns | None:
    """Returns the turns of a stage whose executions take some; one alone computes anyway.

    Raises:
        LoadFailedError: the stage has no such output.
    """
    if not message.HasField("realtime") or order.concurrency == 1:
        return None
    port = find_port(order.outputs, message.realtime.port)
    if port is None or not message.realtime.per_second > 0:
        raise LoadFailedError(
            f"stage {order.stage_id!r} has no output {message.realtime.port!r} to be played",
            stage=order.stage_id,
        )
    return Turns(port, message.realtime.per_second)


def fault(stage_id: str, what: str, error: Exception) -> pb.AttachRequest:
    """Returns the answer to an order that failed; only typed failures keep their text."""
    failure = error if isinstance(error, StageError) else None
    if failure is None:
        error_id = uuid.uuid4().hex[:12]
        _log.error("stage %s %s error_id=%s", stage_id, what, error_id, exc_info=error)
        failure = LoadFailedError(
            f"stage {stage_id!r} {what}; the worker's log has the cause under error id {error_id}",
            stage=stage_id,
            error_id=error_id,
        )
    return pb.AttachRequest(fault=pb.Fault(stage_id=stage_id, failure=status.to_message(failure)))
