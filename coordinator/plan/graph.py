"""The graph of a pipeline: its rules, and the stages in an order in which items can flow."""

import graphlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.facts.ids import PipelineId, StageId
from coordinator.facts.ports import PortType
from coordinator.plan.ports import PortRef, why_not_connectable
from coordinator.plan.positions import FieldPath, spell_path
from coordinator.plan.problems import Problem, suggest
from coordinator.plan.references import PlanParts
from coordinator.plan.schema import PipelineSpec, Plan, StageSpec
from stagewire.errors import PipelineUnknownError, PlanInvalidError

_StageSpecs = Mapping[StageId, StageSpec | None]


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection from an output port to an input port."""

    source: PortRef
    target: PortRef

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True, slots=True)
class PipelineGraph:
    """A pipeline whose rules hold."""

    pipeline: PipelineId
    stages: tuple[StageId, ...]
    """Every stage after all that feed it; otherwise in the order of the plan."""
    edges: tuple[Edge, ...]
    inputs: Mapping[str, PortRef]
    """Input port that takes each value a client sends."""
    outputs: Mapping[str, PortRef]
    """Output port that gives each value a client gets."""
    input_types: Mapping[PortRef, PortType]
    """Rules of every input port of every stage."""
    output_types: Mapping[PortRef, PortType]
    """Rules of every output port of every stage, connected or not."""


def build_graph(plan: Plan, pipeline_id: str) -> PipelineGraph:
    """Returns the graph of one pipeline.

    Raises:
        PipelineUnknownError: the plan has no such pipeline.
        PlanInvalidError: the pipeline breaks a rule; one that was loaded from a file does not.
    """
    name = PipelineId(pipeline_id)
    pipeline = plan.pipelines.get(name)
    if pipeline is None:
        known = ", ".join(sorted(plan.pipelines))
        raise PipelineUnknownError(f"the plan has no pipeline of that name; it has {known}")
    if problems := check_pipeline(name, pipeline, plan.stages):
        lines = (f"{spell_path(item.path)}: {item.what}; {item.remedy}" for item in problems)
        raise PlanInvalidError("\n".join(lines), problem_count=len(problems))
    edges = tuple(Edge(source, target) for source, target in pipeline.edges)
    stages = _in_order(pipeline, plan.stages)
    return PipelineGraph(
        name,
        stages,
        edges,
        dict(pipeline.inputs),
        dict(pipeline.outputs),
        dict(_port_types(plan.stages, stages, is_input=True)),
        dict(_port_types(plan.stages, stages, is_input=False)),
    )


def check_pipelines(parts: PlanParts) -> list[Problem]:
    """Lists every broken rule of every pipeline."""
    if parts.stages is None:
        return []
    return [
        problem
        for name, pipeline in (parts.pipelines or {}).items()
        if pipeline is not None
        for problem in check_pipeline(name, pipeline, parts.stages)
    ]


def check_pipeline(name: PipelineId, pipeline: PipelineSpec, stages: _StageSpecs) -> list[Problem]:
    """Lists the broken rules of one pipeline; broken stages are left out of it."""
    check = _Check(("pipelines", name), pipeline, stages)
    check.ports()
    check.feeders()
    check.cycles()
    return check.problems


@dataclass(slots=True)
class _Check:
    """The rules of one pipeline, in the order in which they depend on each other."""

    path: FieldPath
    pipeline: PipelineSpec
    stages: _StageSpecs
    problems: list[Problem] = field(default_factory=list)
    _misspelled: set[StageId] = field(default_factory=set)
    """Stages with an unknown input port: one that seems unfed may be the one that was meant."""

    def ports(self) -> None:
        """Every reference names a port of the right direction; edges connect ports that agree."""
        for value, port in self.pipeline.inputs.items():
            self._port((*self.path, "inputs", value), port, is_input=True)
        for number, (source, target) in enumerate(self.pipeline.edges):
            path = (*self.path, "edges", number)
            given = self._port((*path, 0), source, is_input=False)
            taken = self._port((*path, 1), target, is_input=True)
            if given is None or taken is None:
                continue
            if reason := why_not_connectable(given, taken):
                what = f"{source} gives {given}, {target} takes {taken}: {reason[0]}"
                self.problems.append(Problem(path, what, reason[1]))
        for value, port in self.pipeline.outputs.items():
            self._port((*self.path, "outputs", value), port, is_input=False)

    def feeders(self) -> None:
        """Every input port of every stage of the pipeline is fed by exactly one edge or input."""
        fed: dict[PortRef, str] = {}
        for path, port in _fed_ports(self.path, self.pipeline):
            if port in fed:
                what = f"feeds {port}, which {fed[port]} feeds already"
                self.problems.append(Problem(path, what, "remove one of the two"))
            fed.setdefault(port, spell_path(path))
        for name in _members(self.pipeline, self.stages):
            stage = self.stages[name]
            if stage is None or name in self._misspelled:
                continue
            for port in (PortRef(name, port) for port in stage.inputs):
                if port not in fed:
                    remedy = "add an edge or an input of the pipeline that feeds it"
                    problem = Problem(self.path, f"nothing feeds {port}", remedy, is_about_key=True)
                    self.problems.append(problem)

    def cycles(self) -> None:
        """No item can come back to a stage that it left."""
        edges = dict(enumerate(self.pipeline.edges))
        while cycle := _find_cycle(edges.values()):
            steps = set(itertools.pairwise(cycle))
            closing = [
                number
                for number, (source, target) in edges.items()
                if (source.stage, target.stage) in steps
            ]
            what = f"closes a cycle: {' -> '.join(cycle)}"
            path = (*self.path, "edges", closing[-1])
            self.problems.append(Problem(path, what, "remove an edge of the cycle"))
            # The next cycle is one that remains when this edge is gone.
            del edges[closing[-1]]

    def _port(self, path: FieldPath, port: PortRef, *, is_input: bool) -> PortType | None:
        """Returns the rules of a port; lists it when it is not there."""
        if port.stage not in self.stages:
            what = f'names the stage "{port.stage}", which the plan does not describe'
            self.problems.append(Problem(path, what, suggest(port.stage, self.stages)))
            return None
        stage = self.stages[port.stage]
        if stage is None:
            return None
        wanted, other = (stage.inputs, stage.outputs) if is_input else (stage.outputs, stage.inputs)
        if port.port in wanted:
            return wanted[port.port].port_type
        kind, opposite = ("input", "output") if is_input else ("output", "input")
        what = f'names the {kind} "{port.port}", which stage {port.stage} does not have'
        remedy = suggest(port.port, wanted)
        if port.port in other:
            remedy = f"{port} is an {opposite}; {remedy}"
        self.problems.append(Problem(path, what, remedy))
        if is_input:
            self._misspelled.add(port.stage)
        return None


def _fed_ports(path: FieldPath, pipeline: PipelineSpec) -> Iterator[tuple[FieldPath, PortRef]]:
    for value, port in pipeline.inputs.items():
        yield (*path, "inputs", value), port
    for number, (_, target) in enumerate(pipeline.edges):
        yield (*path, "edges", number, 1), target


def _members(pipeline: PipelineSpec, stages: Mapping[StageId, object]) -> tuple[StageId, ...]:
    """Returns the stages that a pipeline mentions, in the order of the plan."""
    ports = [*pipeline.inputs.values(), *pipeline.outputs.values()]
    ports += [port for edge in pipeline.edges for port in edge]
    mentioned = {port.stage for port in ports}
    return tuple(name for name in stages if name in mentioned)


def _in_order(pipeline: PipelineSpec, stages: Mapping[StageId, object]) -> tuple[StageId, ...]:
    """Returns the first stage of the plan all of whose feeders came before, again and again."""
    waiting = list(_members(pipeline, stages))
    ordered: list[StageId] = []
    while waiting:
        blocked = {t.stage for s, t in pipeline.edges if s.stage in waiting}
        ordered.append(next(name for name in waiting if name not in blocked))
        waiting.remove(ordered[-1])
    return tuple(ordered)


def _find_cycle(edges: Iterable[tuple[PortRef, PortRef]]) -> list[StageId] | None:
    sorter: graphlib.TopologicalSorter[StageId] = graphlib.TopologicalSorter()
    for source, target in edges:
        if source.stage == target.stage:
            return [source.stage, target.stage]
        sorter.add(target.stage, source.stage)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        cycle: list[StageId] = error.args[1]
        return cycle
    return None


def _port_types(
    specs: Mapping[StageId, StageSpec], stages: Iterable[StageId], *, is_input: bool
) -> Iterator[tuple[PortRef, PortType]]:
    for name in stages:
        ports = specs[name].inputs if is_input else specs[name].outputs
        for port, spec in ports.items():
            yield PortRef(name, port), spec.port_type
