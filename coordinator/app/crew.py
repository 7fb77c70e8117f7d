"""The workers of one run: started together, and stopped."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from coordinator.app.design import Design
from coordinator.app.settings import Settings
from coordinator.app.worker_life import WorkerLife
from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.reach.layout import Environment
from coordinator.reach.worker_log import last_lines
from coordinator.supervise.runner import WorkerRunner
from stagewire.errors import StageError

_log = logging.getLogger(__name__)
_LOG_LINES: Final = 12


class MakeLife(Protocol):
    """Makes the life of a worker in an environment."""

    def __call__(self, worker: WorkerId, *, environment: Environment) -> WorkerLife:
        """Returns it; nothing is started by then."""


class Crew:
    """Owns the lives and the runners of all workers."""

    def __init__(self, design: Design, settings: Settings, changed: Callable[[], None]) -> None:
        self.lives: dict[WorkerId, WorkerLife] = {}
        self.runners: dict[WorkerId, WorkerRunner] = {}
        self._design = design
        self._settings = settings
        self._changed = changed
        self._incarnations = itertools.count(1)
        self._tasks: dict[WorkerId, asyncio.Task[None]] = {}

    def make(self, environments: Mapping[WorkerId, Environment], make_life: MakeLife) -> None:
        """Makes every worker; nothing is started by then."""
        for worker, environment in environments.items():
            life = self.lives[worker] = make_life(worker, environment=environment)
            self.runners[worker] = WorkerRunner(
                worker,
                life,
                start_deadline_seconds=self._settings.timing.start_deadline,
                limits=self._settings.restarts,
                changed=self._changed,
                next_incarnation=lambda: Incarnation(next(self._incarnations)),
            )

    def start(self) -> None:
        """Starts every worker."""
        for worker, runner in self.runners.items():
            self._tasks[worker] = asyncio.create_task(runner.run(), name=f"worker-{worker}")

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

    @property
    def given_up(self) -> tuple[WorkerId, ...]:
        """Workers that the plan needs and that are not started again by themselves."""
        return tuple(
            worker
            for worker, runner in self.runners.items()
            if runner.is_given_up and not self._is_optional(worker)
        )

    def kill(self) -> None:
        """Ends every worker at once."""
        for life in self.lives.values():
            if life.hosting.process is not None:
                life.hosting.process.kill_group()

    async def _up(self, worker: WorkerId) -> None:
        """Waits until a worker is ready once; an optional one may fail."""
        try:
            await self.runners[worker].first_outcome
        except StageError as error:
            if not self._is_optional(worker):
                self._note_log(worker, error)
                raise
            _log.warning("optional worker is not there worker=%s", worker)

    def _is_optional(self, worker: WorkerId) -> bool:
        return self._design.plan.workers[worker].optional

    def _note_log(self, worker: WorkerId, error: StageError) -> None:
        """Adds the end of a worker's log to its failure, for the operator: notes stay in here."""
        path = self.lives[worker].log_path
        lines = last_lines(path, _LOG_LINES)
        if lines:
            error.add_note(f"the end of {path}:\n" + "\n".join(lines))
