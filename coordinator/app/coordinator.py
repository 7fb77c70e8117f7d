"""One run of a coordinator: up in order, serving until it is asked to stop, down in order."""

import asyncio
import contextlib
import functools
import logging
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from coordinator.app.crew import Crew
from coordinator.app.designing import design_run, require_loopback
from coordinator.app.directory import Directory
from coordinator.app.log_file import logging_to
from coordinator.app.preparation import Download, Preparation, Report
from coordinator.app.processes import list_processes
from coordinator.app.settings import Settings
from coordinator.app.state import StateView
from coordinator.app.state_folder import StateFolder
from coordinator.app.turns import Turns
from coordinator.app.worker_life import WorkerLife
from coordinator.facts.ids import WorkerId
from coordinator.gateway.service import Gateway
from coordinator.gateway.tasks import end_task
from coordinator.pipeline.engine import Engine, LaneLimit
from coordinator.plan.loading import LoadedPlan
from coordinator.reach.limits_linux import allow_open_files
from coordinator.reach.starting import process_starter
from coordinator.supervise.life import WorkerPhase
from stagewire.endpoint import Endpoint, remove_endpoint
from stagewire.errors import ShuttingDownError, WorkerReadyError, WorkerUnknownError
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import management_pb2

if TYPE_CHECKING:
    from coordinator.serve.listener import Listener

_log = logging.getLogger(__name__)


class Coordinator:
    """Brings one plan up and keeps it up. Lives on one event loop."""

    def __init__(self, settings: Settings, loaded: LoadedPlan, report: Report) -> None:
        require_loopback()
        allow_open_files(len(loaded.plan.workers))
        self.settings = settings
        self.loaded = loaded
        self.design = design_run(settings, loaded)
        self.preparation = Preparation(settings, loaded, self.design, report)
        self._report = report
        self._stop = asyncio.Event()
        self._has_workers = asyncio.Event()
        self._crew = Crew(self.design, settings, self._changed)
        self.lives = self._crew.lives
        self.runners = self._crew.runners
        self.cut_short = 0
        """Requests that the stop did not wait for."""
        self.given_up: tuple[WorkerId, ...] = ()
        """Workers that the plan needs and that were given up when it was stopped."""
        self._drain_seconds = settings.timing.drain

    def downloads(self) -> tuple[Download, ...]:
        """Returns what must be fetched first. Blocking."""
        return self.preparation.downloads()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Endpoint]:
        """Brings everything up; the block runs while it serves; then everything goes down.

        Raises:
            StageError: something could not be brought up; by then everything is down again.
        """
        with (
            StateFolder(self.settings.state_folder) as folder,
            logging_to(folder.logs / "coordinator.log"),
        ):
            await self.preparation.in_thread(self.preparation.pull)
            environments = await self.preparation.in_thread(self.preparation.environments)
            async with contextlib.AsyncExitStack() as stack:
                in_use = stack.enter_context(contextlib.ExitStack())
                gateway = Gateway(heartbeat_seconds=self.settings.timing.heartbeat)
                await gateway.start()
                stack.push_async_callback(gateway.stop)
                turns = Turns(self.design.ledger)
                make_life = functools.partial(
                    WorkerLife,
                    design=self.design,
                    in_use=in_use,
                    preparation=self.preparation,
                    gateway=gateway,
                    turns=turns,
                    starter=process_starter(),
                    log_folder=folder.logs,
                    timing=self.settings.timing,
                    changed=self._changed,
                )
                self._crew.make(environments, make_life)
                self._make_engine(turns)
                # Workers first: their interpreters start while the services are imported.
                self._crew.start()
                try:
                    endpoint = await self._serve(stack, folder)
                except BaseException:
                    await self._stop_workers()
                    raise
                stack.push_async_callback(self._stop_workers)
                await self._crew.all_up()
                _log.info("ready plan=%s address=%s", endpoint.plan, endpoint.address)
                yield endpoint
                await self._drain()

    async def wait_for_stop(self) -> None:
        """Waits until somebody asks the coordinator to stop."""
        await self._stop.wait()

    async def states(self) -> AsyncIterator[pb.CoordinatorState]:
        """Iterates over the state from the first start of a worker on, after every change."""
        await self._has_workers.wait()
        async for state in self.view.changes():
            yield state

    def kill(self) -> None:
        """Ends every worker at once and forgets the endpoint, for a process about to end itself."""
        self._crew.kill()
        remove_endpoint(self.settings.state_folder, os.getpid())

    def request_stop(self, drain_seconds: float | None = None) -> int:
        """Begins to stop; returns how many requests are running."""
        if drain_seconds is not None:
            self._drain_seconds = drain_seconds
        self._stop.set()
        return len(list(self.engine.running))

    def restart_worker(self, worker: WorkerId) -> None:
        """Starts a worker again that was given up or waits for its next start.

        Raises:
            WorkerUnknownError: the plan has none of that name.
            WorkerStuckError: its last process does not end.
            WorkerReadyError: there is nothing to start.
        """
        runner = self.runners.get(worker)
        if runner is None:
            raise WorkerUnknownError(
                f"the plan has no worker {worker!r}; it has {', '.join(self.runners)}"
            )
        if runner.stuck is not None:
            raise runner.stuck
        if runner.phase is WorkerPhase.READY:
            raise WorkerReadyError(f"worker {worker!r} is ready; nothing is started")
        runner.start_again()

    def processes(self) -> management_pb2.ListProcessesResponse:
        """Returns the processes that run now."""
        return list_processes(self.design, self.lives, self.runners, self.preparation)

    # --- up ---

    def _make_engine(self, turns: Turns) -> None:
        self._turns = turns
        self.directory = Directory(self.design, self.lives, self.runners)
        self.engine = Engine(
            self.design.topologies,
            {
                stage: LaneLimit(limits.concurrency, limits.queue)
                for stage in self.design.stages
                for limits in (self.design.plan.stages[stage].limits,)
            },
            self.directory,
        )
        self.view = StateView(self.design, self.lives, self.runners, self.directory)
        self._health_wanted = asyncio.Event()
        self.view.on_change = self._health_wanted.set
        self._has_workers.set()

    async def _serve(self, stack: contextlib.AsyncExitStack, folder: StateFolder) -> Endpoint:
        from coordinator.serve.listener import management_listener, public_listener
        from coordinator.serve.operators import ManagementService
        from coordinator.serve.public import CoordinatorService

        public = public_listener(self.settings.address, CoordinatorService(self.engine, self.view))
        management = management_listener("127.0.0.1:0", ManagementService(self))
        for listener in (public, management):
            await listener.start()
            stack.push_async_callback(listener.stop)
        health = asyncio.create_task(self._follow_health(public))
        stack.push_async_callback(end_task, health)
        endpoint = Endpoint(
            address=public.address,
            token=public.token,
            management_address=management.address,
            management_token=management.token,
            pid=os.getpid(),
            plan=self.design.plan.metadata.name,
        )
        folder.publish(endpoint)
        return endpoint

    def _changed(self) -> None:
        self.view.changed()
        # Memory may have come back: loads that wait for their turn look again.
        self._turns.tell()

    async def _follow_health(self, listener: "Listener") -> None:
        """Says of everything and of every stage whether it can be used; follows processes."""
        while True:
            self._health_wanted.clear()
            ready = {stage: self.directory.is_ready(stage) for stage in self.design.stages}
            await listener.set_health("", is_serving=self.view.is_serving)
            for stage, is_ready in ready.items():
                await listener.set_health(f"stage.{stage}", is_serving=is_ready)
            await self._health_wanted.wait()

    # --- down ---

    async def _drain(self) -> None:
        self.given_up = self._crew.given_up
        self.view.is_draining = True
        self.view.changed()
        _log.info("draining")
        self.cut_short = await self.engine.drain(self._drain_seconds)
        if self.cut_short:
            _log.warning("requests cut short count=%s", self.cut_short)

    async def _stop_workers(self) -> None:
        self.engine.fail_all(ShuttingDownError("the coordinator stopped"))
        try:
            await self._crew.stop()
        finally:
            self.view.has_stopped = True
            self.view.changed()
