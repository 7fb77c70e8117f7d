"""The state of a coordinator as clients see it, and its changes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from coordinator.app.design import Design
from coordinator.app.directory import Directory
from coordinator.app.worker_life import WorkerLife
from coordinator.facts.ids import StageId, WorkerId
from coordinator.ledger.budgets import steady_bytes
from coordinator.ledger.reservation import Lifetime, stage_owner, worker_owner
from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.runner import WorkerRunner
from stagewire import ports
from stagewire.v1 import capability_pb2
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration

_PHASES: Mapping[WorkerPhase, pb.Phase.ValueType] = {
    WorkerPhase.PENDING: pb.PHASE_PENDING,
    WorkerPhase.STARTING: pb.PHASE_STARTING,
    WorkerPhase.READY: pb.PHASE_READY,
    WorkerPhase.RESTARTING: pb.PHASE_RESTARTING,
    WorkerPhase.FAILED: pb.PHASE_FAILED,
    WorkerPhase.STOPPED: pb.PHASE_STOPPED,
}


class StateView:
    """Builds the state and tells its watchers when it may have changed."""

    def __init__(
        self,
        design: Design,
        lives: Mapping[WorkerId, WorkerLife],
        runners: Mapping[WorkerId, WorkerRunner],
        directory: Directory,
    ) -> None:
        self._design = design
        self._lives = lives
        self._runners = runners
        self._directory = directory
        self._watchers: set[asyncio.Event] = set()
        self.is_draining = False
        self.has_stopped = False
        self.on_change: Callable[[], None] = lambda: None

    def changed(self) -> None:
        """Has every watcher look again."""
        for watcher in self._watchers:
            watcher.set()
        self.on_change()

    async def changes(self) -> AsyncIterator[pb.CoordinatorState]:
        """Iterates over the state now and after every change, until the coordinator stops."""
        event = asyncio.Event()
        self._watchers.add(event)
        sent: pb.CoordinatorState | None = None
        try:
            while True:
                event.clear()
                state = self.state()
                if state != sent:
                    yield state
                    sent = state
                # Asked of what was sent: it may have stopped while that was on its way.
                if state.phase == pb.PHASE_STOPPED:
                    return
                await event.wait()
        finally:
            self._watchers.discard(event)

    @property
    def is_serving(self) -> bool:
        """Whether every stage can be used, but for those of optional workers that are given up."""
        return all(
            self._directory.is_ready(stage) or self._is_done_without(placed.worker_id)
            for stage, placed in self._design.placement.stages.items()
        )

    def _is_done_without(self, worker: WorkerId) -> bool:
        return self._runners[worker].is_given_up and self._design.plan.workers[worker].optional

    def state(self) -> pb.CoordinatorState:
        """Returns the state as it is now."""
        return pb.CoordinatorState(
            plan_name=self._design.plan.metadata.name,
            phase=self._phase(),
            workers=[self._worker(name) for name in self._design.workers],
            stages=[self._stage(name) for name in self._design.stages],
            pipelines=[
                pb.PipelineState(
                    pipeline=name,
                    inputs=[ports.to_message(port) for port in topology.inputs],
                    outputs=[ports.to_message(port) for port in topology.outputs],
                    is_ready=all(map(self._directory.is_ready, topology.stages)),
                )
                for name, topology in self._design.topologies.items()
            ],
            ledger=self._ledger(),
        )

    def _phase(self) -> pb.Phase.ValueType:
        if self.has_stopped:
            return pb.PHASE_STOPPED
        if self.is_draining:
            return pb.PHASE_DRAINING
        # The plan is carried out without an optional worker that is given up.
        phases = {
            runner.phase
            for worker, runner in self._runners.items()
            if not self._is_done_without(worker)
        }
        for phase in (WorkerPhase.FAILED, WorkerPhase.RESTARTING):
            if phase in phases:
                return _PHASES[phase]
        return pb.PHASE_READY if phases <= {WorkerPhase.READY} else pb.PHASE_STARTING

    def _worker(self, name: WorkerId) -> pb.WorkerState:
        runner, attached = self._runners[name], self._lives[name].hosting.attached
        measurement = attached.measurement if attached is not None else None
        owners = {worker_owner(name), *map(stage_owner, self._design.stages_on(name))}
        claims = [
            line.reservation
            for line in self._design.ledger.snapshot().reservations
            if line.reservation.owner in owners
        ]
        return pb.WorkerState(
            worker_id=name,
            kind=self._design.plan.workers[name].kind,
            incarnation=runner.incarnation,
            phase=_PHASES[runner.phase],
            restarts=runner.restarts,
            last_reason=runner.last_error.reason if runner.last_error is not None else "",
            reserved_bytes=steady_bytes(claims),
            measured_bytes=measurement.total_bytes if measurement is not None else 0,
            peak_bytes=measurement.peak_bytes if measurement is not None else 0,
            capabilities=attached.rows if attached is not None else (),
            prospect=runner.prospect,
        )

    def _stage(self, name: StageId) -> pb.StageState:
        placed = self._design.placement.stages[name]
        hosting, runner = self._lives[placed.worker_id].hosting, self._runners[placed.worker_id]
        spec = self._design.plan.stages[name]
        state = pb.StageState(
            stage_id=name,
            worker_id=placed.worker_id,
            device=placed.device,
            executor=spec.executor,
            phase=_PHASES[runner.phase],
            verdict=capability_pb2.VERDICT_UNMEASURED,
            grade=capability_pb2.GRADE_E,
            reserved_bytes=spec.memory.resident,
            placement_reason=placed.reason,
        )
        if self._directory.is_ready(name):
            state.phase = pb.PHASE_READY
        elif runner.phase is WorkerPhase.READY:
            # Its incarnation is fenced, and the runner has not been told yet.
            state.phase = pb.PHASE_RESTARTING
        loaded = hosting.stages.get(name)
        if loaded is not None:
            state.verdict = capability_pb2.Verdict.Value(f"VERDICT_{loaded.verdict.name}")
            state.grade = capability_pb2.Grade.Value(f"GRADE_{loaded.grade.name}")
            state.evidence = loaded.evidence
            state.measured_bytes = loaded.measured_bytes
            state.load_duration.CopyFrom(to_duration(loaded.load_seconds))
            state.thread_settings.extend(loaded.thread_settings)
        else:
            state.evidence = hosting.phase_of(name)
        return state

    def _ledger(self) -> pb.LedgerState:
        snapshot = self._design.ledger.snapshot()
        state = pb.LedgerState(
            constraints=[
                pb.ConstraintState(
                    constraint=line.constraint,
                    limit_bytes=line.limit_bytes,
                    reserved_bytes=line.reserved_bytes,
                    grade=capability_pb2.Grade.Value(f"GRADE_{line.grade.name}"),
                )
                for line in snapshot.constraints
            ]
        )
        state.failed_budgets.extend(
            pb.FailedBudget(
                owner=failed.owner,
                kind=failed.kind.value,
                budget_bytes=failed.budget_bytes,
                measured_bytes=failed.measured_bytes,
            )
            for failed in self._design.ledger.failed_budgets()
        )
        for line in snapshot.reservations:
            reservation = state.reservations.add(
                owner=line.reservation.owner,
                lifetime=line.reservation.lifetime.value,
                size_bytes=line.reservation.size_bytes,
                grade=capability_pb2.Grade.Value(f"GRADE_{line.reservation.grade.name}"),
            )
            if line.measurement is not None and line.reservation.lifetime is Lifetime.RESIDENT:
                reservation.measured_bytes = line.measurement.measured_bytes
        return state
