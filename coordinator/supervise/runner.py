"""The life of one worker over all its incarnations: start, bring up, watch, lose, start again."""

import asyncio
import contextlib
import enum
import logging
import random
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.supervise.policy import GiveUp, RestartHistory, RestartLimits
from stagewire.errors import (
    InternalFaultError,
    Refusal,
    ShuttingDownError,
    StageError,
    StageFailedError,
    WorkerHungError,
    WorkerLostError,
    WorkerStartError,
    WorkerStuckError,
)

_log = logging.getLogger(__name__)
_EXIT_GRACE_SECONDS: Final = 1.0
"""Time between the end of a worker's link and the end of its process, when it leaves by itself."""


class WorkerPhase(enum.StrEnum):
    """What a worker is doing."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class Process(Protocol):
    """A started process, as far as supervision needs it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    async def wait(self) -> object:
        """Waits until the process has ended and its group is gone; returns how, as text."""

    async def aclose(self) -> None:
        """Ends the process and everything that it started, at once, and frees what it held here."""


class Life(Protocol):
    """What the coordinator does with one worker; the runner decides when."""

    async def start(self, incarnation: Incarnation) -> Process:
        """Starts the process of an incarnation."""

    async def bring_up(self, incarnation: Incarnation) -> None:
        """Waits for the worker to attach, and loads and proves its stages."""

    async def watch(self, incarnation: Incarnation) -> str:
        """Waits for a hang of an incarnation that attached; returns what was seen."""

    def lose(self, incarnation: Incarnation, reason: StageError) -> None:
        """Fences an incarnation: its requests end with the reason."""

    def settle(self, incarnation: Incarnation) -> None:
        """Gives its memory back; its process is proven gone."""


class WorkerRunner:
    """Keeps one worker alive within its restart limits."""

    def __init__(
        self,
        worker: WorkerId,
        life: Life,
        *,
        start_deadline_seconds: float,
        limits: RestartLimits,
        changed: Callable[[], None],
        next_incarnation: Callable[[], Incarnation],
    ) -> None:
        self.worker = worker
        self.phase = WorkerPhase.PENDING
        self.incarnation = Incarnation(0)
        self.restarts = 0
        self.last_error: StageError | None = None
        self.stuck: WorkerStuckError | None = None
        """Set while a killed process does not end, and for good when a stop did not wait for it."""
        self.first_outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = life
        self._start_deadline = start_deadline_seconds
        self._limits = limits
        self._changed = changed
        self._next_incarnation = next_incarnation
        self._history = RestartHistory()
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Runs incarnation after incarnation until stopped."""
        while not self._stopping.is_set():
            try:
                error = await self._live()
            except Exception:  # the outermost edge of a task: nobody may wait for it for ever
                _log.exception("supervision failed worker=%s", self.worker)
                error = InternalFaultError(
                    f"worker {self.worker!r} could not be supervised; the log has the cause"
                )
                if self.stuck is None:
                    self._life.settle(self.incarnation)
            if self._stopping.is_set():
                break
            self.last_error = error
            _log.warning("worker lost worker=%s reason=%s %s", self.worker, error.reason, error)
            self._fail_first(error)
            await self._pause(error)
        self._set(WorkerPhase.STOPPED)

    def start_again(self) -> None:
        """Starts a worker that was given up, or waits for its next start, at once."""
        self._history = self._history.reset()
        self._woken.set()

    def stop(self) -> None:
        """Makes `run` end after the present incarnation; the caller cancels it to end at once."""
        self._stopping.set()
        self._woken.set()

    async def _live(self) -> StageError:
        """Lives one incarnation; returns why it ended."""
        incarnation = self.incarnation = self._next_incarnation()
        self._set(WorkerPhase.STARTING)
        try:
            process = await self._life.start(incarnation)
        except StageError as failure:
            self._life.settle(incarnation)
            return failure
        ended = asyncio.ensure_future(process.wait())
        error: StageError = ShuttingDownError("the coordinator stopped")
        try:
            error = await self._until_lost(incarnation, ended)
        finally:
            # Everybody is told at once, also by a stop; memory returns only with the process.
            self._life.lose(incarnation, error)
            ending = asyncio.ensure_future(self._end(incarnation, process, ended))
            try:
                await asyncio.shield(ending)
            finally:
                # A cancel cuts the life short, not its end, which has a limit of its own.
                await ending
        return error

    async def _end(
        self, incarnation: Incarnation, process: Process, ended: "asyncio.Future[object]"
    ) -> None:
        """Ends the process and waits until it is gone, at a stop no longer than its limit."""
        closed = asyncio.ensure_future(process.aclose())
        try:
            await _first_of(closed, timeout_seconds=self._limits.end_seconds)
            if not closed.done():
                self._note_stuck(process.pid)
                stopping = asyncio.ensure_future(self._stopping.wait())
                await _first_of(closed, stopping)
                stopping.cancel()
            if closed.done():
                await closed
                await ended
                self.stuck = None
                self._life.settle(incarnation)
        finally:
            closed.cancel()
            ended.cancel()

    def _note_stuck(self, pid: int) -> None:
        """Says that a process does not end. Its memory stays charged, its worker takes nothing."""
        self.stuck = self.last_error = WorkerStuckError(
            f"process {pid} of worker {self.worker!r} did not end within"
            f" {self._limits.end_seconds:g} s after it was killed; its memory stays reserved",
            worker=self.worker,
        )
        _log.error("process did not end worker=%s pid=%s", self.worker, pid)
        self._fail_first(self.stuck)
        self._set(WorkerPhase.FAILED)

    def _fail_first(self, error: StageError) -> None:
        """Ends the first start: a plan that cannot come up is the operator's to judge."""
        if not self.first_outcome.done():
            self.first_outcome.set_exception(error)
            # Nobody waits any more when bring-up was cancelled; that is no lost failure.
            self.first_outcome.exception()

    async def _until_lost(
        self, incarnation: Incarnation, ended: "asyncio.Future[object]"
    ) -> StageError:
        up = asyncio.ensure_future(self._life.bring_up(incarnation))
        hung: asyncio.Future[str] | None = None
        try:
            await _first_of(up, ended, timeout_seconds=self._start_deadline)
            if not up.done():
                if ended.done():
                    return WorkerStartError(
                        f"worker {self.worker!r} ended while it started: {ended.result()}"
                    )
                return WorkerStartError(
                    f"worker {self.worker!r} was not ready after {self._start_deadline:g} s"
                )
            failure = up.exception()
            if failure is not None:
                return await self._explain(failure, ended)
            self._history = self._history.ready(time.monotonic())
            self._set(WorkerPhase.READY)
            if not self.first_outcome.done():
                self.first_outcome.set_result(None)
            hung = asyncio.ensure_future(self._life.watch(incarnation))
            await _first_of(hung, ended)
            if ended.done():
                return WorkerLostError(
                    f"worker {self.worker!r} ended: {ended.result()}", worker=self.worker
                )
            return WorkerHungError(
                f"worker {self.worker!r} made no progress: {hung.result()}", worker=self.worker
            )
        finally:
            for task in (up, hung):
                if task is not None and not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task

    async def _explain(self, failure: BaseException, ended: "asyncio.Future[object]") -> StageError:
        """Returns the reason of a failed start: how the process ended says more than its link."""
        if isinstance(failure, WorkerLostError):
            await _first_of(ended, timeout_seconds=_EXIT_GRACE_SECONDS)
            if ended.done():
                return WorkerStartError(
                    f"worker {self.worker!r} ended while it started: {ended.result()}"
                )
        if isinstance(failure, StageError):
            return failure
        raise failure

    async def _pause(self, error: StageError) -> None:
        """Waits as long as the policy says; for good when the breaker is open."""
        self._history, decision = self._history.lost(
            time.monotonic(), random.random(), self._limits
        )
        self._woken.clear()
        # A refusal comes again however often the worker is started: something must change first.
        if isinstance(decision, GiveUp) or isinstance(error, Refusal):
            self._set(WorkerPhase.FAILED)
            await self._woken.wait()
            return
        self._set(WorkerPhase.RESTARTING)
        self.restarts += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), decision.delay_seconds)

    def _set(self, phase: WorkerPhase) -> None:
        self.phase = phase
        self._changed()

    def refusal(self) -> StageError:
        """Returns why a worker that is given up takes no requests."""
        # Its reason alone: the message of a failed start may name a file, and this goes to clients.
        cause = f" after {self.last_error.reason}" if self.last_error is not None else ""
        return StageFailedError(f"worker {self.worker!r} was given up{cause}", worker=self.worker)


async def _first_of(*futures: "asyncio.Future[Any]", timeout_seconds: float | None = None) -> None:
    """Waits until one of the futures is done, whatever their results are (hence Any)."""
    await asyncio.wait(futures, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
