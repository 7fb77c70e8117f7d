"""The workers of one run: started together, started over where one was damaged, and stopped."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from coordinator.app.design import Design
from coordinator.app.preparation import Preparation
from coordinator.app.settings import Settings
from coordinator.app.worker_life import WorkerLife
from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.reach.layout import Environment
from coordinator.reach.worker_log import last_lines
from coordinator.supervise.runner import WorkerRunner
from stagewire.errors import (
    CapabilityMissingError,
    EnvironmentBrokenError,
    EnvironmentStaleError,
    StageError,
    WorkerStartError,
)

_log = logging.getLogger(__name__)
_LOG_LINES: Final = 12
_MAY_BE_DAMAGE: Final = (
    CapabilityMissingError,
    EnvironmentBrokenError,
    EnvironmentStaleError,
    WorkerStartError,
)
"""How a worker fails to come up when a file of its environment is damaged."""


class MakeLife(Protocol):
    """Makes the life of a worker in an environment."""

    def __call__(self, worker: WorkerId, *, environment: Environment) -> WorkerLife:
        """Returns it; nothing is started by then."""


class Crew:
    """Owns the lives and the runners of all workers."""

    def __init__(
        self,
        design: Design,
        settings: Settings,
        preparation: Preparation,
        changed: Callable[[], None],
    ) -> None:
        self.lives: dict[WorkerId, WorkerLife] = {}
        self.runners: dict[WorkerId, WorkerRunner] = {}
        self._design = design
        self._settings = settings
        self._preparation = preparation
        self._changed = changed
        self._incarnations = itertools.count(1)
        self._tasks: dict[WorkerId, asyncio.Task[None]] = {}

    def make(
        self,
        environments: Mapping[WorkerId, Environment],
        make_life: MakeLife,
        in_use: contextlib.ExitStack,
    ) -> None:
        """Makes every worker; `in_use` keeps their environments from being replaced."""
        self._make_life = make_life
        self._in_use = in_use
        self._environments = dict(environments)
        for worker in environments:
            self._make(worker)

    def start(self) -> None:
        """Starts every worker."""
        for worker in self.runners:
            self._start(worker)

    async def all_up(self) -> None:
        """Waits until every worker is ready once, or the first one fails.

        Raises:
            StageError: one failed that the plan needs.
        """
        waits = [asyncio.create_task(self._up(worker)) for worker in self.runners]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def stop(self) -> None:
        """Asks every worker to leave; ends those that do not in time.

        Raises:
            WorkerStuckError: a killed process did not end; everything else is done by then.
        """
        for runner in self.runners.values():
            runner.stop()
        leave = self._settings.timing.leave
        await asyncio.gather(*(life.leave(leave) for life in self.lives.values()))
        _, waiting = await asyncio.wait(self._tasks.values(), timeout=leave)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for runner in self.runners.values():
            if runner.stuck is not None:
                raise runner.stuck

    def kill(self) -> None:
        """Ends every worker at once."""
        for life in self.lives.values():
            if life.hosting.process is not None:
                life.hosting.process.kill_group()

    def _make(self, worker: WorkerId) -> WorkerRunner:
        environment = self._environments[worker]
        self._in_use.enter_context(environment.in_use())
        life = self.lives[worker] = self._make_life(worker, environment=environment)
        runner = self.runners[worker] = WorkerRunner(
            worker,
            life,
            start_deadline_seconds=self._settings.timing.start_deadline,
            limits=self._settings.restarts,
            changed=self._changed,
            next_incarnation=lambda: Incarnation(next(self._incarnations)),
        )
        return runner

    def _start(self, worker: WorkerId) -> None:
        run = self.runners[worker].run()
        self._tasks[worker] = asyncio.create_task(run, name=f"worker-{worker}")

    async def _up(self, worker: WorkerId) -> None:
        """Waits until a worker is ready once; an optional one may fail."""
        try:
            try:
                await self.runners[worker].first_outcome
            except _MAY_BE_DAMAGE as error:
                await self._mend(worker, error)
        except StageError as error:
            if not self._is_optional(worker):
                self._note_log(worker, error)
                raise
            _log.warning("optional worker is not there worker=%s", worker)

    async def _mend(self, worker: WorkerId, error: StageError) -> None:
        """Starts a worker over, once, if its environment was damaged and could be built anew.

        Raises:
            StageError: it was not, or could not, or the worker failed again.
        """
        before = self.runners[worker]
        before.stop()
        self._tasks[worker].cancel()
        await asyncio.wait([self._tasks[worker]])
        mended: Environment | None = None
        try:
            mended = await self._preparation.in_thread(self._preparation.mend, worker)
        except StageError as worse:
            error = worse
        if mended is None and not self._is_optional(worker):
            raise error
        if mended is not None:
            _log.warning("environment built anew worker=%s", worker)
            self._environments[worker] = mended
        runner = self._make(worker)
        runner.restarts = max(before.restarts, 1)
        runner.last_error = before.last_error
        self._start(worker)
        if mended is None:
            raise error
        await runner.first_outcome

    def _is_optional(self, worker: WorkerId) -> bool:
        return self._design.plan.workers[worker].optional

    def _note_log(self, worker: WorkerId, error: StageError) -> None:
        """Adds the end of a worker's log to its failure, for the operator: notes stay in here."""
        path = self.lives[worker].log_path
        lines = last_lines(path, _LOG_LINES)
        if lines:
            error.add_note(f"the end of {path}:\n" + "\n".join(lines))
