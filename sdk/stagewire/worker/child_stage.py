"""A stage whose function runs in a child of the worker, which is started again when it ends.

A child is worth its memory for a function that is mostly Python: it neither holds the interpreter
lock of the worker, nor can it hang, crash or exhaust it. Its end fails what it held, nothing else.
"""

import logging
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from stagewire.errors import LoadFailedError, StageError, StageFailedError, StageStartingError
from stagewire.tensor import Value
from stagewire.worker.attest import THREAD_VARIABLES
from stagewire.worker.child_order import ChildOrder
from stagewire.worker.child_peer import ChildPeer
from stagewire.worker.child_process import CHILD_MODULE, ChildProcess, start_child
from stagewire.worker.child_wire import TICK_SECONDS
from stagewire.worker.executor import Execution, Progress, StageOrder

_log = logging.getLogger(__name__)
COMMAND: Final = (sys.executable, "-I", "-X", "faulthandler", "-m", CHILD_MODULE)
_STARTS: Final = 5
_STARTS_SECONDS: Final = 60.0
"""Most starts within that time; then the stage answers STAGE_FAILED until the first has aged."""
_HANG_PART: Final = 0.9
"""Of the stage's hang timeout, so that the child is ended before the worker would be."""
_RELOAD_SECONDS: Final = 30.0
_RELOAD_FACTOR: Final = 10.0
"""A start that takes so many times as long as the first one, and that long, hangs."""


def load_in_child(
    target: str, order: StageOrder, progress: Progress, *, command: Sequence[str] = COMMAND
) -> "ChildStage":
    """Loads a stage in a child of its own.

    Args:
        target: `module:function` with the arguments and the result of `Executor.load`; the child
            imports it.
        order: The stage.
        progress: Told what the child does while it loads for the first time.
        command: What is started; a test may start something else.

    Raises:
        StageError: the stage could not be loaded.
    """
    stage = ChildStage(target, order, command)
    stage.start(progress)
    return stage


class ChildStage:
    """Implements `LoadedStage`."""

    def __init__(self, target: str, order: StageOrder, command: Sequence[str]) -> None:
        self._target = target
        self._order = order
        self._stage_id = order.stage_id
        self._command = command
        self._hang_seconds = order.hang_timeout_seconds * _HANG_PART
        self._settings: Mapping[str, str] = {}
        self._starts: deque[float] = deque(maxlen=_STARTS)
        self._first_seconds: float | None = None
        self._changed = threading.Condition()
        self._peer: ChildPeer | None = None
        """The child that takes executions; None while there is none."""
        self._process: ChildProcess | None = None
        self._failure: StageError | None = None
        """Why the last start failed; None after one that went well."""
        self._is_released = False
        # It starts the children, which end with it, and lives until the last one was waited for.
        self._keeper = threading.Thread(
            target=self._keep, name=f"child-{order.stage_id}", daemon=True
        )

    def start(self, progress: Progress) -> None:
        """Starts the child and waits until it has loaded.

        Raises:
            StageError: it could not be loaded.
        """
        self._progress = progress
        progress("starting a process")
        self._keeper.start()
        with self._changed:
            self._changed.wait_for(lambda: self._peer is not None or self._failure is not None)
            failure = self._failure if self._peer is None else None
        self._progress = lambda _: None
        if failure is not None:
            self.release()
            raise failure

    # --- LoadedStage ---

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force in the child, and where they may run."""
        return self._settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Asks the child for its example."""
        return self._ready(None).example(self._hang_seconds)

    def run(self, execution: Execution) -> None:
        """Runs one execution in the child."""
        self._ready(execution).run(execution, self._hang_seconds)

    def release(self) -> None:
        """Ends the child; returns when it is gone."""
        with self._changed:
            self._is_released = True
            peer, process = self._peer, self._process
            self._changed.notify_all()
        if peer is not None:
            peer.release()
        elif process is not None:
            process.kill()
        self._keeper.join()

    def _ready(self, execution: Execution | None) -> ChildPeer:
        """Waits for a child that takes executions; it may be about to be started again."""
        until = time.monotonic() + self._hang_seconds
        with self._changed:
            while self._peer is None or self._peer.is_ending:
                left = self._pause_seconds()
                if left > 0:
                    cause = f": {self._failure.message}" if self._failure is not None else ""
                    raise StageFailedError(
                        f"the process of stage {self._stage_id!r} ended {_STARTS} times"
                        f" within {_STARTS_SECONDS:.0f} s; it is started again in {left:.0f} s"
                        f"{cause}",
                        retry_delay_ms=round(left * 1000),
                        stage=self._stage_id,
                    )
                if time.monotonic() > until:
                    raise StageStartingError(
                        f"the process of stage {self._stage_id!r} is being started again",
                        retry_delay_ms=1000,
                        stage=self._stage_id,
                    )
                if execution is not None and execution.has_ended:
                    execution.check()
                self._changed.wait(TICK_SECONDS)
            return self._peer

    def _pause_seconds(self) -> float:
        """Returns how long no child is started, because too many were."""
        if self._process is not None or len(self._starts) < _STARTS:
            return 0.0
        return self._starts[0] + _STARTS_SECONDS - time.monotonic()

    # --- the keeper ---

    def _keep(self) -> None:
        while self._may_start():
            began = time.monotonic()
            self._starts.append(began)
            try:
                self._live(began)
            except Exception as error:  # the outermost edge of a thread: a load waits for it
                self._note(None, self._failure_of(error))
                if self._first_seconds is None:
                    return

    def _may_start(self) -> bool:
        with self._changed:
            while not self._is_released and (left := self._pause_seconds()) > 0:
                self._changed.wait(left)
            return not self._is_released

    def _live(self, began: float) -> None:
        """Starts one child and stays with it to its end.

        Raises:
            StageError: it did not load.
        """
        process = start_child(self._command, self._environment())
        try:
            peer = ChildPeer(process, self._order)
        except OSError:
            process.close()
            raise
        try:
            with self._changed:
                self._process = process
                if self._is_released:
                    return
            order = ChildOrder(self._target, os.getpid(), self._order)
            self._settings = peer.load(order, self._progress, self._load_seconds())
            if self._first_seconds is None:
                self._first_seconds = time.monotonic() - began
            self._note(peer, None)
            peer.follow()
        finally:
            with self._changed:
                self._peer = None
            how = peer.end()
            with self._changed:
                self._process = None
                self._changed.notify_all()
        if not self._is_released:
            _log.error("the child of stage %s ended: %s", self._stage_id, how)

    def _note(self, peer: ChildPeer | None, failure: StageError | None) -> None:
        with self._changed:
            self._peer = peer
            self._failure = failure
            self._changed.notify_all()

    def _failure_of(self, error: Exception) -> StageError:
        if isinstance(error, StageError):
            return error
        cause = error.strerror if isinstance(error, OSError) else None
        if cause is None:
            error_id = uuid.uuid4().hex[:12]
            _log.error(
                "stage %s has no child error_id=%s", self._stage_id, error_id, exc_info=error
            )
            cause = f"the worker's log has the cause under error id {error_id}"
        return LoadFailedError(
            f"the process of stage {self._stage_id!r} cannot be started: {cause}",
            stage=self._stage_id,
        )

    def _load_seconds(self) -> float | None:
        """Returns how long a load may take; the first one is bounded by the coordinator."""
        if self._first_seconds is None:
            return None
        return max(_RELOAD_SECONDS, _RELOAD_FACTOR * self._first_seconds)

    def _environment(self) -> dict[str, str]:
        """Returns the variables of the worker, with the thread count of this stage alone."""
        threads = dict.fromkeys(THREAD_VARIABLES, str(self._order.thread_count))
        return {**os.environ, **threads}
