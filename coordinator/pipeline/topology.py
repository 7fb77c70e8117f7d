"""A pipeline as the engine walks it: sources, targets and the rules of their ports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.facts.ids import PipelineId, StageId
from coordinator.facts.ports import PortType
from stagewire.descriptor import DataType
from stagewire.ports import Dimension, Port


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of an edge: a port of a stage, or of the pipeline itself when `stage` is None."""

    stage: StageId | None
    port: str

    def __str__(self) -> str:
        return f"{self.stage}.{self.port}" if self.stage is not None else self.port


@dataclass(frozen=True, slots=True)
class Source:
    """Where items come from, the rules that they satisfy, and where they go."""

    origin: Endpoint
    port: Port
    targets: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """A pipeline with every port resolved."""

    pipeline: PipelineId
    stages: tuple[StageId, ...]
    """In topological order."""
    sources: Mapping[Endpoint, Source]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def outputs_of(self, stage: StageId) -> Iterable[Source]:
        """Returns the sources that one stage feeds."""
        return (item for item in self.sources.values() if item.origin.stage == stage)


def make_topology(
    pipeline: PipelineId,
    stages: Iterable[StageId],
    stage_outputs: Mapping[StageId, Mapping[str, PortType]],
    stage_inputs: Mapping[StageId, Mapping[str, PortType]],
    edges: Iterable[tuple[tuple[StageId, str], tuple[StageId, str]]],
    inputs: Mapping[str, tuple[StageId, str]],
    outputs: Mapping[str, tuple[StageId, str]],
) -> Topology:
    """Resolves a checked graph.

    A stage output that nothing consumes is a source without targets.
    """
    ordered = tuple(stages)
    targets: dict[tuple[StageId, str], list[Endpoint]] = {
        (stage, port): [] for stage in ordered for port in stage_outputs[stage]
    }
    for origin, (stage, port) in edges:
        targets[origin].append(Endpoint(stage, port))
    for name, origin in outputs.items():
        targets[origin].append(Endpoint(None, name))
    sources: dict[Endpoint, Source] = {}
    for (stage, name), ends in targets.items():
        endpoint = Endpoint(stage, name)
        sources[endpoint] = Source(endpoint, to_port(name, stage_outputs[stage][name]), tuple(ends))
    for name, (stage, port) in inputs.items():
        endpoint = Endpoint(None, name)
        sources[endpoint] = Source(
            endpoint, to_port(name, stage_inputs[stage][port]), (Endpoint(stage, port),)
        )
    return Topology(
        pipeline,
        ordered,
        sources,
        tuple(to_port(name, stage_inputs[stage][port]) for name, (stage, port) in inputs.items()),
        tuple(to_port(name, stage_outputs[stage][port]) for name, (stage, port) in outputs.items()),
    )


def to_port(name: str, rules: PortType) -> Port:
    """Returns the wire's form of a port."""
    return Port(
        name,
        DataType[rules.data_type.name],
        tuple(Dimension(extent.name, extent.max_extent) for extent in rules.extents),
        rules.is_stream,
    )
