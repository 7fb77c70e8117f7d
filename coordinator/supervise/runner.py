"""The life of one worker over all its incarnations: start, bring up, watch, lose, start again."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable
from typing import Final

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.supervise import reasons
from coordinator.supervise.awake import first_of
from coordinator.supervise.ending import end_process
from coordinator.supervise.life import Life, Process, WorkerPhase
from coordinator.supervise.policy import Breaker, GiveUp, RestartHistory, RestartLimits
from stagewire.errors import (
    CapabilityMissingError,
    EnvironmentBrokenError,
    EnvironmentStaleError,
    Refusal,
    ShuttingDownError,
    StageError,
    TokenInvalidError,
    WireVersionMismatchError,
    WorkerLostError,
    WorkerStartError,
    WorkerStuckError,
)

_log = logging.getLogger(__name__)
_EXIT_GRACE_SECONDS: Final = 1.0
"""Time between the end of a worker's link and the end of its process, when it leaves by itself."""
_MAY_BE_DAMAGE: Final = (
    CapabilityMissingError,
    EnvironmentBrokenError,
    EnvironmentStaleError,
    WorkerStartError,
)
"""How a worker fails to come up when a file of its environment is damaged."""
_REFUSED_HELLO: Final = (EnvironmentStaleError, TokenInvalidError, WireVersionMismatchError)


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
        self._prospect = ""
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()

    # --- what others see ---

    @property
    def breaker(self) -> Breaker:
        """Whether the worker is started again after a loss."""
        return self._history.breaker_at(time.monotonic(), self._limits)

    @property
    def is_given_up(self) -> bool:
        """Whether requests are refused at once: the breaker is open, or a trial is not won yet."""
        return self.phase is WorkerPhase.FAILED or (
            self.phase is not WorkerPhase.READY and self.breaker is Breaker.HALF_OPEN
        )

    @property
    def prospect(self) -> str:
        """What comes next for a worker that was lost, for people; empty when all is well."""
        if self.phase is not WorkerPhase.READY:
            return self._prospect
        if self.breaker is Breaker.HALF_OPEN:
            return f"on trial: given up again if lost within {self._limits.calm_seconds:g} s"
        return ""

    def refusal(self) -> StageError:
        """Returns why a worker that is given up takes no requests."""
        return reasons.given_up(self.worker, self.last_error)

    def start_again(self) -> None:
        """Starts a worker that was given up, or waits for its next start, at once."""
        self._history = self._history.reset()
        self._woken.set()

    def stop(self) -> None:
        """Makes `run` end after the present incarnation; the caller cancels it to end at once."""
        self._stopping.set()
        self._woken.set()

    # --- incarnation after incarnation ---

    async def run(self) -> None:
        """Runs incarnation after incarnation until stopped."""
        while not self._stopping.is_set():
            try:
                error = await self._attempt()
            except Exception:  # the outermost edge of a task: nobody may wait for it for ever
                _log.exception("supervision failed worker=%s", self.worker)
                error = reasons.unsupervised(self.worker)
                if self.stuck is None:
                    self._life.settle(self.incarnation)
            if error is not None and not self._stopping.is_set():
                self.last_error = error
                self._fail_first(error)
                await self._pause(error)
        self._set(WorkerPhase.STOPPED)

    async def _attempt(self) -> StageError | None:
        """Lives one incarnation; returns why it ended, or None where that is mended."""
        error = await self._live()
        if self._stopping.is_set():
            return error
        self.last_error = error
        _log.warning("worker lost worker=%s reason=%s %s", self.worker, error.reason, error)
        if not isinstance(error, _MAY_BE_DAMAGE):
            return error
        return await self._unmended(error)

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
        is_gone = await end_process(
            process,
            ended,
            limit_seconds=self._limits.end_seconds,
            stopping=self._stopping,
            note_stuck=lambda: self._note_stuck(process.pid),
        )
        if is_gone:
            self.stuck = None
            self._life.settle(incarnation)

    def _note_stuck(self, pid: int) -> None:
        """Says that a process does not end. Its memory stays charged, its worker takes nothing."""
        self.stuck = self.last_error = reasons.stuck(self.worker, pid, self._limits.end_seconds)
        _log.error("process did not end worker=%s pid=%s", self.worker, pid)
        self._fail_first(self.stuck)
        self._prospect = f"waits for the end of its process; {WorkerStuckError.recovery}"
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
            await first_of(up, ended, limit_seconds=self._start_deadline)
            if not up.done():
                if ended.done():
                    return reasons.ended_early(self.worker, ended.result())
                return reasons.late(self.worker, self._start_deadline, self._life.awaited())
            failure = up.exception()
            if failure is not None:
                return await self._explain(failure, ended)
            self._history = self._history.ready(time.monotonic())
            self._set(WorkerPhase.READY)
            if not self.first_outcome.done():
                self.first_outcome.set_result(None)
            hung = asyncio.ensure_future(self._life.watch(incarnation))
            await first_of(hung, ended)
            if ended.done():
                return reasons.ended(self.worker, ended.result())
            return reasons.hung(self.worker, hung.result())
        finally:
            for task in (up, hung):
                if task is not None and not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task

    async def _explain(self, failure: BaseException, ended: "asyncio.Future[object]") -> StageError:
        """Returns the reason of a failed start: how the process ended says more than its link."""
        if isinstance(failure, (WorkerLostError, *_REFUSED_HELLO)):
            # One that is refused logs why and ends: whoever reads its log must find that there.
            await first_of(ended, limit_seconds=_EXIT_GRACE_SECONDS)
            if ended.done() and isinstance(failure, WorkerLostError):
                return reasons.ended_early(self.worker, ended.result())
        if isinstance(failure, StageError):
            return failure
        raise failure

    # --- between two incarnations ---

    async def _unmended(self, error: StageError) -> StageError | None:
        """Returns why a worker stays lost; None where damage was the cause and is mended."""
        mending = asyncio.ensure_future(self._life.mend())
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await first_of(mending, stop)
            if not mending.done() or not mending.result():
                return error
        except StageError as worse:
            return worse
        finally:
            stop.cancel()
            mending.cancel()
            with contextlib.suppress(asyncio.CancelledError, StageError):
                await mending
        self.restarts += 1
        return None

    async def _pause(self, error: StageError) -> None:
        """Waits as long as the policy says, when the breaker is open for a trial or a person."""
        self._history, decision = self._history.lost(
            time.monotonic(), random.random(), self._limits, is_refused=isinstance(error, Refusal)
        )
        self._prospect = decision.message
        self._woken.clear()
        if isinstance(decision, GiveUp):
            self._set(WorkerPhase.FAILED)
            if not await self._is_woken(decision.trial_seconds):
                self._history = self._history.on_trial()
                self._prospect = "started on trial after it was given up"
                self.restarts += 1
            return
        self._set(WorkerPhase.RESTARTING)
        self.restarts += 1
        await self._is_woken(decision.delay_seconds)

    async def _is_woken(self, limit_seconds: float | None) -> bool:
        """Waits until somebody wakes the runner, no longer than a limit; says whether one did."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), limit_seconds)
        return self._woken.is_set()

    def _set(self, phase: WorkerPhase) -> None:
        self.phase = phase
        self._changed()
