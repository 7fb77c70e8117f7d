"""The design of a run: where every stage goes and what it takes, decided before anything starts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.app.support import check_supported, unreachable_workers
from coordinator.devices.memory import HostMemory
from coordinator.devices.probing import Unavailable
from coordinator.devices.rows import CapabilityRow, device_kind
from coordinator.facts.cores import HostCores
from coordinator.facts.ids import PipelineId, StageId, WorkerId
from coordinator.ledger.budgets import (
    StageBudget,
    TransportBudget,
    WorkerBudget,
    plan_reservations,
)
from coordinator.ledger.constraints import HostMemoryLimits, host_constraints
from coordinator.ledger.ledger import Ledger
from coordinator.pipeline.topology import Topology, make_topology, to_port
from coordinator.placement.cores import CoreWish, StageCores, assign_cores
from coordinator.placement.requirement import (
    ArtifactChoice,
    DeviceRule,
    Placement,
    StageRequirement,
    WorkerOffer,
)
from coordinator.placement.search import place
from coordinator.plan.graph import PipelineGraph, build_graph
from coordinator.plan.ports import PortRef
from coordinator.plan.schema import Plan, StageSpec


@dataclass(frozen=True, slots=True)
class Design:
    """What a plan becomes on this machine."""

    plan: Plan
    pipelines: tuple[PipelineId, ...]
    stages: tuple[StageId, ...]
    """Stages of those pipelines, in the order of the plan."""
    workers: tuple[WorkerId, ...]
    """Workers that host any of them, in the order of the plan."""
    placement: Placement
    cores: Mapping[StageId, StageCores]
    """Where the threads of each stage run."""
    topologies: Mapping[PipelineId, Topology]
    ledger: Ledger
    """With every reservation of the plan admitted."""

    def stages_on(self, worker: WorkerId) -> tuple[StageId, ...]:
        """Returns the stages that were placed on a worker."""
        return tuple(s for s in self.stages if self.placement.stages[s].worker_id == worker)


def make_design(
    plan: Plan,
    rows: Iterable[CapabilityRow],
    memory: HostMemory | Unavailable,
    *,
    pipelines: Sequence[str] = (),
    quota_bytes: int | None = None,
    cores: HostCores | Unavailable | None = None,
) -> Design:
    """Decides a plan as a whole.

    Raises:
        StageError: a pipeline is unknown, a stage has no place, or the plan does not fit.
    """
    check_supported(plan)
    unreachable = unreachable_workers(plan)
    names = tuple(PipelineId(name) for name in pipelines) or tuple(plan.pipelines)
    graphs = {name: build_graph(plan, name) for name in names}
    used = {stage for graph in graphs.values() for stage in graph.stages}
    stages = tuple(stage for stage in plan.stages if stage in used)
    placement = place(
        [_requirement(plan, stage) for stage in stages],
        [
            WorkerOffer(WorkerId(worker), unreachable.get(WorkerId(worker), ""))
            for worker in plan.workers
        ],
        rows,
    )
    hosting = {placement.stages[stage].worker_id for stage in stages}
    topologies = {name: _topology(graph) for name, graph in graphs.items()}
    workers = tuple(worker for worker in plan.workers if worker in hosting)
    return Design(
        plan,
        names,
        stages,
        workers,
        placement,
        assign_cores(
            [_core_wish(plan, placement, stage) for stage in stages],
            cores if isinstance(cores, HostCores) else None,
        ),
        topologies,
        _admitted(plan, stages, workers, placement, topologies.values(), memory, quota_bytes),
    )


def _requirement(plan: Plan, stage_id: StageId) -> StageRequirement:
    stage = plan.stages[stage_id]
    rule = DeviceRule(
        require=stage.device.require or "",
        prefer=stage.device.prefer or (),
        forbid=stage.device.forbid,
    )
    return StageRequirement(
        stage_id,
        stage.executor,
        tuple(WorkerId(worker) for worker in stage.workers),
        rule,
        _choices(plan, stage),
        stage.function or "",
    )


def _core_wish(plan: Plan, placement: Placement, stage_id: StageId) -> CoreWish:
    stage, placed = plan.stages[stage_id], placement.stages[stage_id]
    return CoreWish(
        stage_id,
        placed.worker_id,
        stage.threads,
        stage.cores,
        is_on_cpu=device_kind(placed.device) == "cpu",
    )


def _choices(plan: Plan, stage: StageSpec) -> Mapping[str, ArtifactChoice]:
    if stage.artifact is None:
        return {}
    by_device = {"": stage.artifact} if isinstance(stage.artifact, str) else stage.artifact
    return {
        device: ArtifactChoice(name, plan.artifacts[name].format)
        for device, name in by_device.items()
    }


def _topology(graph: PipelineGraph) -> Topology:
    def pair(port: PortRef) -> tuple[StageId, str]:
        return port.stage, port.port

    return make_topology(
        graph.pipeline,
        graph.stages,
        {
            stage: {p.port: t for p, t in graph.output_types.items() if p.stage == stage}
            for stage in graph.stages
        },
        {
            stage: {p.port: t for p, t in graph.input_types.items() if p.stage == stage}
            for stage in graph.stages
        },
        [(pair(edge.source), pair(edge.target)) for edge in graph.edges],
        {name: pair(port) for name, port in graph.inputs.items()},
        {name: pair(port) for name, port in graph.outputs.items()},
    )


def _admitted(
    plan: Plan,
    stages: Sequence[StageId],
    workers: Sequence[WorkerId],
    placement: Placement,
    topologies: Iterable[Topology],
    memory: HostMemory | Unavailable,
    quota_bytes: int | None,
) -> Ledger:
    known = None if isinstance(memory, Unavailable) else memory
    constraints = host_constraints(
        HostMemoryLimits(
            physical_bytes=known.total_bytes if known else None,
            available_bytes=known.available_bytes if known else None,
            cgroup_bytes=known.cgroup_free_bytes if known else None,
            os_reserve_bytes=plan.policies.os_reserve,
            quota_bytes=quota_bytes,
        )
    )
    ledger = Ledger(constraints)
    ledger.admit(
        plan_reservations(
            [WorkerBudget(name, plan.workers[name].memory.resident) for name in workers],
            [
                StageBudget(
                    name,
                    placement.stages[name].worker_id,
                    plan.stages[name].memory.resident,
                    plan.stages[name].memory.load_peak,
                    plan.stages[name].memory.per_request,
                    plan.stages[name].limits.concurrency,
                )
                for name in stages
            ],
            [_transport(plan, name, topologies) for name in stages],
            constraints[-1].constraint,
        )
    )
    return ledger


def _transport(plan: Plan, stage: StageId, topologies: Iterable[Topology]) -> TransportBudget:
    spec = plan.stages[stage]
    # An output is counted once, however many pipelines and clients it goes to: its lane limits it.
    answers = {
        source.origin.port: source.port
        for topology in topologies
        for source in topology.outputs_of(stage)
        if any(target.stage is None for target in source.targets)
    }
    inputs = [to_port(name, port.port_type) for name, port in spec.inputs.items()]
    return TransportBudget(
        stage,
        tuple(port.window_bytes for port in (*inputs, *answers.values())),
        spec.limits.concurrency + spec.limits.queue,
    )
