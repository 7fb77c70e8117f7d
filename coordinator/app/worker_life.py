"""What the coordinator does with one worker: starts, fills, watches and loses it."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from coordinator.app.design import Design
from coordinator.app.preparation import Preparation
from coordinator.app.settings import Timing
from coordinator.app.turns import Turns
from coordinator.artifacts.specification import Artifact
from coordinator.facts.ids import Incarnation, StageId, WorkerId
from coordinator.facts.proof import Grade, Verdict
from coordinator.gateway.incarnation import Attached
from coordinator.gateway.service import Expectation, Gateway
from coordinator.ledger.reservation import stage_owner, worker_owner
from coordinator.pipeline.topology import to_port
from coordinator.reach.layout import Environment
from coordinator.reach.starting import ProcessStarter, StartedProcess, StartOrder
from coordinator.supervise.watchdog import Lane, Watchdog
from stagewire import ports
from stagewire.errors import CapabilityMissingError, ProofFailedError, StageError
from stagewire.v1 import capability_pb2, gateway_pb2
from stagewire.wiretime import to_duration, to_seconds

_log = logging.getLogger(__name__)
_SLEEP_SECONDS: Final = 5.0
"""A watch that comes so much too late means that the whole machine slept."""


@dataclass(frozen=True, slots=True)
class LoadedStage:
    """A stage that is resident in an incarnation."""

    measured_bytes: int
    load_seconds: float
    verdict: Verdict
    grade: Grade
    evidence: str


@dataclass(slots=True)
class Hosting:
    """What is known of the present incarnation of a worker."""

    attached: Attached | None = None
    process: StartedProcess | None = None
    stages: dict[StageId, LoadedStage] = field(default_factory=dict)
    phases: dict[StageId, str] = field(default_factory=dict)
    """What is being done to stages that are not ready."""


class WorkerLife:
    """Carries out the decisions of one worker's runner; implements `Life`."""

    def __init__(
        self,
        worker: WorkerId,
        design: Design,
        environment: Environment,
        *,
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
        self._environment = environment
        self._preparation = preparation
        self._gateway = gateway
        self._turns = turns
        self._starter = starter
        self.log_path = log_folder / f"{worker}.log"
        self._timing = timing
        self._changed = changed
        self._attachment: asyncio.Future[Attached] | None = None

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
            self._check_rows(hosting.attached)
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
        async with self._turns.load(stage_owner(stage), incarnation):
            phases[stage] = "loading"
            self._changed()
            loaded = await attached.load(self._load_order(stage, checked))
            self._design.ledger.measure(
                stage_owner(stage), loaded.measured_bytes, loaded.measured_bytes
            )
        phases[stage] = "proving"
        return loaded

    async def _prove(
        self, stage: StageId, attached: Attached, loaded: gateway_pb2.StageLoaded
    ) -> None:
        hosting = self.hosting
        hosting.stages[stage] = self._judged(stage, loaded, await attached.prove(stage))
        hosting.phases.pop(stage)
        self._changed()

    async def watch(self, incarnation: Incarnation) -> str:
        """Notes heartbeats and memory until the worker makes no progress any more."""
        hosting = self.hosting
        watchdog = Watchdog(
            self._timing.heartbeat_timeout,
            {
                stage: self._design.plan.stages[stage].limits.hang_timeout
                for stage in self._design.stages_on(self.worker)
            },
        )
        seen = -1
        before = time.monotonic()
        while True:
            now = time.monotonic()
            if now - before > self._timing.heartbeat + _SLEEP_SECONDS:
                watchdog.forgive(now)
            before = now
            attached = hosting.attached
            if attached is not None and attached.heartbeat_count != seen:
                seen = attached.heartbeat_count
                self._note(attached, watchdog, now)
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

    def _check_rows(self, attached: Attached) -> None:
        """Compares what the worker says with what the placement took it to execute."""
        rows = {row.executor: row for row in attached.rows}
        for name in self._design.stages_on(self.worker):
            stage = self._design.plan.stages[name]
            choice = self._design.placement.stages[name].artifact
            row = rows.get(stage.executor)
            if row is None or row.unavailable_reason:
                reason = row.unavailable_reason if row is not None else "it has no such executor"
                raise CapabilityMissingError(
                    f"worker {self.worker!r} cannot run {name!r} by {stage.executor}: {reason}"
                )
            if stage.function and stage.function not in row.functions:
                raise CapabilityMissingError(
                    f"worker {self.worker!r} has no function {stage.function!r};"
                    f" it has {', '.join(row.functions)}"
                )
            if choice is not None and choice.artifact_format not in row.formats:
                raise CapabilityMissingError(
                    f"worker {self.worker!r} does not execute {choice.artifact_format} by"
                    f" {stage.executor}; it executes {', '.join(row.formats)}"
                )

    def _load_order(
        self, name: StageId, checked: "tuple[Artifact, Path] | None"
    ) -> gateway_pb2.LoadStage:
        stage = self._design.plan.stages[name]
        placed = self._design.placement.stages[name]
        order = gateway_pb2.LoadStage(
            stage_id=name,
            executor=stage.executor,
            device=placed.device,
            function=stage.function or "",
            options_json=json.dumps(_plain(stage.options)),
            inputs=[
                ports.to_message(to_port(port, spec.port_type))
                for port, spec in stage.inputs.items()
            ],
            outputs=[
                ports.to_message(to_port(port, spec.port_type))
                for port, spec in stage.outputs.items()
            ],
            thread_count=stage.threads,
            resident_bytes=stage.memory.resident,
            load_peak_bytes=stage.memory.load_peak,
            concurrency=stage.limits.concurrency,
        )
        if checked is not None and placed.artifact is not None:
            _, folder = checked
            order.artifact_format = placed.artifact.artifact_format
            order.artifact_root = str(folder)
            for file in self._design.plan.artifacts[placed.artifact.artifact_id].files:
                order.files.add(path=file.path, sha256=file.sha256, size_bytes=file.size or 0)
        return order

    def _judged(
        self, name: StageId, loaded: gateway_pb2.StageLoaded, proved: gateway_pb2.StageProved
    ) -> LoadedStage:
        """Returns what a proof says of a stage.

        Raises:
            ProofFailedError: the plan asks for more than it says.
        """
        verdict = Verdict[capability_pb2.Verdict.Name(proved.verdict).removeprefix("VERDICT_")]
        grade = Grade[capability_pb2.Grade.Name(proved.grade).removeprefix("GRADE_")]
        wanted = self._design.plan.stages[name].device.min_evidence
        if verdict not in (Verdict.FULL, Verdict.PARTIAL):
            raise ProofFailedError(
                f"stage {name!r} did not run as it must: {verdict.value}; {proved.evidence}",
                stage=name,
                verdict=verdict.value,
            )
        if wanted is not None and grade < wanted:
            raise ProofFailedError(
                f"stage {name!r} is proved with grade {grade.name}, the plan wants {wanted.name};"
                " lower device.min_evidence or choose a device that earns it",
                stage=name,
            )
        return LoadedStage(
            loaded.measured_bytes, to_seconds(loaded.duration), verdict, grade, proved.evidence
        )

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


def _plain(options: Mapping[str, object]) -> dict[str, object]:
    """Returns options as JSON can hold them: the plan's own mappings are read-only views."""
    return {key: _plain_value(value) for key, value in options.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain_value(item) for item in value]
    return value
