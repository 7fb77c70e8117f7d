"""What the coordinator does with one worker: starts, fills, watches and loses it."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from coordinator.app.design import Design
from coordinator.app.hosting import LOADED, LOADING, Hosting
from coordinator.app.preparation import Preparation
from coordinator.app.settings import Timing
from coordinator.app.stage_orders import check_rows, judged, load_order
from coordinator.app.turns import Turns
from coordinator.artifacts.specification import Artifact
from coordinator.facts.ids import Incarnation, StageId, WorkerId
from coordinator.gateway.incarnation import Attached
from coordinator.gateway.service import Expectation, Gateway
from coordinator.ledger.reservation import stage_owner, worker_owner
from coordinator.reach.layout import Environment
from coordinator.reach.starting import ProcessStarter, StartedProcess, StartOrder
from coordinator.supervise.awake import AwakeClock
from coordinator.supervise.watchdog import Lane, Watchdog
from stagewire.errors import StageError
from stagewire.v1 import gateway_pb2
from stagewire.wiretime import to_duration

_log = logging.getLogger(__name__)
_LINK_GRACE_SECONDS: Final = 1.0


class WorkerLife:
    """Carries out the decisions of one worker's runner; implements `Life`."""

    def __init__(
        self,
        worker: WorkerId,
        design: Design,
        environment: Environment,
        *,
        in_use: contextlib.ExitStack,
        preparation: Preparation,
        gateway: Gateway,
        turns: Turns,
        starter: ProcessStarter,
        log_folder: Path,
        timing: Timing,
        changed: Callable[[], None],
    ) -> None:
        self.worker = worker
        self.hosting = Hosting()
        self._design = design
        self._in_use = in_use
        self._take(environment)
        self._preparation = preparation
        self._gateway = gateway
        self._turns = turns
        self._starter = starter
        self.log_path = log_folder / f"{worker}.log"
        self._timing = timing
        self._changed = changed
        self._attachment: asyncio.Future[Attached] | None = None

    def _take(self, environment: Environment) -> None:
        """Starts in an environment from now on, and keeps it from being replaced."""
        self._in_use.enter_context(environment.in_use())
        self._environment = environment

    async def mend(self) -> bool:
        """Builds the environment anew if it was damaged, once in a run; returns whether it was.

        Raises:
            StageError: it was and could not be built, or needs something of the machine.
        """
        mended = await self._preparation.in_thread(self._preparation.mend, self.worker)
        if mended is None or mended is self._environment:
            return False
        _log.warning("environment built anew worker=%s", self.worker)
        self._take(mended)
        return True

    async def start(self, incarnation: Incarnation) -> StartedProcess:
        """Starts the process; its memory is charged before it exists."""
        ledger = self._design.ledger
        ledger.occupy(worker_owner(self.worker), incarnation)
        token = secrets.token_urlsafe(32)
        stages = [self._design.plan.stages[name] for name in self._design.stages_on(self.worker)]
        process = self._starter.start(
            StartOrder(
                self._environment.python,
                self._environment.worker_module,
                self.log_path,
                max((stage.threads for stage in stages), default=1),
                {
                    "address": self._gateway.address,
                    "token": token,
                    "worker_id": self.worker,
                    "parent_pid": os.getpid(),
                    "environment_key": self._environment.key,
                    "distributions": sorted(self._environment.distributions),
                },
            )
        )
        self.hosting = Hosting(process=process)
        expectation = Expectation(
            self.worker,
            incarnation,
            process.pid,
            self._environment.key,
            dict(self._environment.distributions),
            process.executing,
        )
        self._attachment = self._gateway.expect(token, expectation)
        return process

    async def bring_up(self, incarnation: Incarnation) -> None:
        """Waits for the worker to attach, then loads and proves its stages in order."""
        stages = self._design.stages_on(self.worker)
        hosting = self.hosting
        # Every byte is read and checked while the interpreter starts and imports.
        checks = {
            stage: asyncio.create_task(asyncio.to_thread(self._preparation.materialize, stage))
            for stage in stages
        }
        tasks: list[asyncio.Task[Any]] = [*checks.values()]
        try:
            if self._attachment is None:
                raise RuntimeError("a worker is brought up before it was started")
            hosting.attached = await self._attachment
            check_rows(self._design, self.worker, hosting.attached.rows)
            loaded = {
                stage: await self._load(stage, hosting.attached, incarnation, checks[stage])
                for stage in stages
            }
            # Together: each runs on its own stage, and none is measured.
            proofs = [
                asyncio.create_task(self._prove(stage, hosting.attached, loaded[stage]))
                for stage in stages
            ]
            tasks += proofs
            await asyncio.gather(*proofs)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def awaited(self) -> str:
        """Returns what `bring_up` waits for at the moment, for people."""
        return self.hosting.awaited()

    async def _load(
        self,
        stage: StageId,
        attached: Attached,
        incarnation: Incarnation,
        check: "asyncio.Task[tuple[Artifact, Path] | None]",
    ) -> gateway_pb2.StageLoaded:
        phases = self.hosting.phases
        phases[stage] = "checking files"
        checked = await check
        phases[stage] = "waiting for its turn to load"
        async with self._turns.load(stage_owner(stage), incarnation):
            phases[stage] = LOADING
            self._changed()
            loaded = await attached.load(load_order(self._design, stage, checked))
            self._design.ledger.measure(
                stage_owner(stage), loaded.measured_bytes, loaded.measured_bytes
            )
        phases[stage] = LOADED
        return loaded

    async def _prove(
        self, stage: StageId, attached: Attached, loaded: gateway_pb2.StageLoaded
    ) -> None:
        hosting = self.hosting
        hosting.phases[stage] = "proving"
        self._changed()
        proved = await attached.prove(stage)
        hosting.stages[stage] = judged(self._design, stage, loaded, proved)
        hosting.phases.pop(stage)
        self._changed()

    async def watch(self, incarnation: Incarnation) -> str:
        """Notes heartbeats and memory until the worker makes no progress any more."""
        hosting = self.hosting
        fenced_at: float | None = None
        watchdog = Watchdog(
            self._timing.heartbeat_timeout,
            {
                stage: self._design.plan.stages[stage].limits.hang_timeout
                for stage in self._design.stages_on(self.worker)
            },
        )
        seen = -1
        clock = AwakeClock(2 * self._timing.heartbeat)
        while True:
            now = clock.read(time.monotonic())
            attached = hosting.attached
            if attached is not None and attached.heartbeat_count != seen:
                seen = attached.heartbeat_count
                self._note(attached, watchdog, now)
            if attached is not None and attached.fence_reason is not None:
                # Most ends of a link are ends of the process, which say more a moment later.
                fenced_at = now if fenced_at is None else fenced_at
                if now - fenced_at > _LINK_GRACE_SECONDS:
                    return "its connection ended, and its process did not"
            complaint = watchdog.complaint(now)
            if complaint is not None:
                return complaint
            await asyncio.sleep(self._timing.heartbeat / 2)

    def lose(self, incarnation: Incarnation, reason: StageError) -> None:
        """Fences the incarnation; what it held is charged on until its process is gone."""
        self._design.ledger.quarantine(incarnation)
        if self._attachment is not None:
            self._attachment.cancel()
        if self.hosting.attached is not None:
            self.hosting.attached.fence(reason)
        self.hosting.stages.clear()
        self._changed()

    def settle(self, incarnation: Incarnation) -> None:
        """Gives the memory of the incarnation back."""
        self._design.ledger.settle(incarnation)
        self.hosting = Hosting()
        self._changed()

    async def leave(self, timeout_seconds: float) -> None:
        """Lets what was cancelled end, then asks the worker to end by itself."""
        attached = self.hosting.attached
        if attached is None:
            if self.hosting.process is not None:
                self.hosting.process.kill_group()
            return
        order = gateway_pb2.Drain(time_left=to_duration(timeout_seconds))
        with contextlib.suppress(TimeoutError, StageError):
            await asyncio.wait_for(attached.drain(order), timeout_seconds)
        attached.order(gateway_pb2.AttachResponse(shutdown=gateway_pb2.Shutdown()))

    def _note(self, attached: Attached, watchdog: Watchdog, now: float) -> None:
        heartbeat, measurement = attached.heartbeat, attached.measurement
        if heartbeat is None or measurement is None:
            return
        slots: Counter[str] = Counter()
        lanes: list[Lane] = []
        for lane in heartbeat.lanes:
            lanes.append(
                Lane(StageId(lane.stage_id), lane.progress, lane.is_busy, slots[lane.stage_id])
            )
            slots[lane.stage_id] += 1
        watchdog.beat(lanes, now)
        self._design.ledger.measure(
            worker_owner(self.worker), measurement.total_bytes, measurement.peak_bytes
        )
