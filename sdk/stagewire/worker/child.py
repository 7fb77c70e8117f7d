"""The child of a worker: one stage in a process of its own, so that its worker never waits for it.

Started by `stagewire.worker.child_stage` as `python -I -m stagewire.worker.child`, with a socket as
standard input. A thread reads the socket and ends the process when it closes; the main thread, and
more where the stage takes several executions at once, compute.
"""

from stagewire.worker.lifeline import bind_to_parent

if __name__ == "__main__":
    # First of all: the imports below take longer than a worker may live.
    bind_to_parent()

import importlib
import json
import logging
import os
import queue
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Final

from stagewire.errors import LoadFailedError, StageError, StageFaultError
from stagewire.worker.affinity import make_affinity, spell_cores
from stagewire.worker.attest import thread_settings
from stagewire.worker.child_execution import ChildExecution
from stagewire.worker.child_order import ChildOrder
from stagewire.worker.child_process_linux import limit_data, take_connection
from stagewire.worker.child_wire import ChildWire, Frame, Kind, WireError
from stagewire.worker.executor import ExecutionEnded, LoadedStage
from stagewire.worker.memory import make_meter

_log = logging.getLogger(__name__)
_LOST_EXIT_CODE: Final = 70
_SPARE_BYTES: Final = 256 << 20
"""Beyond twice the budget: what is reserved is not all used, as the stacks of threads."""


class Child:
    """One stage and its executions."""

    def __init__(self, wire: ChildWire, order: ChildOrder) -> None:
        self._wire = wire
        self._order = order
        self._stage_id = order.order.stage_id
        self._meter = make_meter()
        self._running: dict[int, ChildExecution] = {}
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stage: LoadedStage | None = None

    def serve(self) -> None:
        """Loads the stage, then works until the worker ends the process."""
        threading.Thread(target=self._follow, name="child-wire", daemon=True).start()
        stage = self._stage = self._load()
        if stage is None:
            return
        for _ in range(self._order.order.concurrency - 1):
            threading.Thread(target=self._compute, name="child-lane", daemon=True).start()
        self._compute()

    def _load(self) -> LoadedStage | None:
        order = self._order.order
        try:
            module, _, name = self._order.target.partition(":")
            load = getattr(importlib.import_module(module), name)
            if order.budget_bytes:
                limit_data(2 * order.budget_bytes + _SPARE_BYTES)
            stage: LoadedStage = load(order, self._note_phase)
            settings = {**self._settings(), **stage.thread_settings}
        except Exception as error:  # the outermost edge of an executor: the worker must answer
            failure = error if isinstance(error, StageError) else None
            if failure is None:
                error_id = _log_error(self._stage_id, "could not be loaded", error)
                failure = LoadFailedError(
                    f"stage {self._stage_id!r} could not be loaded; the worker's log has the cause"
                    f" under error id {error_id}",
                    stage=self._stage_id,
                    error_id=error_id,
                )
            self._wire.send_failure(0, failure)
            return None
        # What the load used for a moment is given back, or it would count as the stage's own.
        self._meter.trim()
        self._wire.send(Kind.LOADED, header=json.dumps(settings).encode())
        return stage

    def _settings(self) -> dict[str, str]:
        affinity = make_affinity()
        cores = {} if affinity is None else {"child.cores": spell_cores(affinity.get(0))}
        variables = {f"child.{name}": value for name, value in thread_settings().items()}
        return {"process": "child", **cores, **variables}

    def _note_phase(self, phase: str) -> None:
        self._wire.send(Kind.PHASE, header=phase.encode())

    # --- the thread that reads ---

    def _follow(self) -> None:
        try:
            while (frame := self._wire.receive()) is not None:
                self._take(frame)
        except BaseException:  # the outermost edge of a thread: without it nothing is heard
            _log.exception("the socket of stage %s failed", self._stage_id)
        os._exit(_LOST_EXIT_CODE)

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.START:
            left = json.loads(frame.header)["seconds_left"]
            execution = ChildExecution(self._wire, frame.execution, left)
            self._running[frame.execution] = execution
            self._work.put(lambda: self._run(frame.execution, execution))
        elif frame.kind is Kind.EXAMPLE:
            self._work.put(lambda: self._tell_example(frame.execution))
        elif frame.kind is Kind.RELEASE:
            self._work.put(self._release)
        elif (known := self._running.get(frame.execution)) is not None:
            # One that has failed may still be answered.
            known.take(frame)

    # --- the threads that compute ---

    def _compute(self) -> None:
        while True:
            self._work.get()()

    def _run(self, number: int, execution: ChildExecution) -> None:
        kind, failure = Kind.DONE, None
        try:
            execution.check()
            self._loaded.run(execution)
        except ExecutionEnded:
            kind = Kind.ENDED
        except BaseException as error:  # the outermost edge of an executor, SystemExit too
            failure = self._failure(error)
        del self._running[number]
        if not self._running:
            self._meter.trim()
        self._finish(number, kind, failure)

    def _tell_example(self, number: int) -> None:
        failure, example = None, {}
        try:
            example = {port: list(values) for port, values in self._loaded.example().items()}
            for port, values in example.items():
                for value in values:
                    self._wire.send_item(number, port, value)
        except Exception as error:  # the outermost edge of an executor: the worker must answer
            failure = self._failure(error)
        self._finish(number, Kind.DONE, failure, json.dumps(list(example)).encode())

    def _finish(
        self, number: int, kind: Kind, failure: StageError | None, header: bytes = b""
    ) -> None:
        if failure is not None:
            self._wire.send_failure(number, failure)
        else:
            self._wire.send(kind, number, header)

    def _release(self) -> None:
        self._loaded.release()
        _leave(0)

    @property
    def _loaded(self) -> LoadedStage:
        if self._stage is None:
            raise RuntimeError("an execution came before the stage was loaded")
        return self._stage

    def _failure(self, error: BaseException) -> StageError:
        if isinstance(error, StageError):
            return error
        if isinstance(error, MemoryError):
            return StageFaultError(f"stage {self._stage_id!r} ran out of memory on its input")
        error_id = _log_error(self._stage_id, "failed on its input", error)
        return StageFaultError(
            f"stage {self._stage_id!r} failed on its input (error id {error_id})",
            stage=self._stage_id,
            error_id=error_id,
        )


def _log_error(stage_id: str, what: str, error: BaseException) -> str:
    error_id = uuid.uuid4().hex[:12]
    _log.error("stage %s %s error_id=%s", stage_id, what, error_id, exc_info=error)
    return error_id


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: a library's own threads must not keep a child whose worker is done with it.
    os._exit(code)


def main() -> None:
    """Serves one stage; the last call of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    wire = ChildWire(take_connection())
    code = _LOST_EXIT_CODE
    try:
        frame = wire.receive()
        if frame is not None:
            order = ChildOrder.from_json(frame.header)
            bind_to_parent(order.parent_pid)
            Child(wire, order).serve()
            code = 1
    except WireError:
        # The worker is gone, or ended this process before it had loaded.
        pass
    _leave(code)


if __name__ == "__main__":
    main()
