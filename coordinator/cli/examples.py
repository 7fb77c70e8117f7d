"""The examples of a plan, read from their files before anything starts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.app.preparation import checkout_root
from coordinator.cli.values import read_inputs
from coordinator.facts.ids import PipelineId
from coordinator.pipeline.topology import to_port
from coordinator.plan.graph import build_graph
from coordinator.plan.loading import LoadedPlan
from coordinator.plan.positions import FieldPath, spell_path
from coordinator.plan.schema import ExampleInputSpec, ExampleSpec
from stagewire.errors import StageError
from stagewire.tensor import Value


@dataclass(frozen=True, slots=True)
class Example:
    """One example, ready to be sent."""

    pipeline: str
    number: int
    """Its place among those of its pipeline, from 1."""
    spec: ExampleSpec
    inputs: Mapping[str, Value]

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.pipeline} {self.number}"


def read_examples(loaded: LoadedPlan, pipelines: Sequence[str]) -> tuple[Example, ...]:
    """Reads the examples of some pipelines, or of all where none is named.

    Raises:
        PipelineUnknownError: the plan has no pipeline of a name.
        FieldInvalidError: an input is missing, or has a value that its port does not take.
        MediaInvalidError: a file is missing or cannot be read as what its name says.
    """
    names = tuple(map(PipelineId, pipelines)) or tuple(loaded.plan.pipelines)
    return tuple(example for name in names for example in _examples(loaded, name))


def _examples(loaded: LoadedPlan, pipeline: PipelineId) -> Iterator[Example]:
    graph = build_graph(loaded.plan, pipeline)
    ports = [to_port(name, graph.input_types[port]) for name, port in graph.inputs.items()]
    for number, spec in enumerate(loaded.plan.pipelines[pipeline].examples):
        path: FieldPath = ("pipelines", pipeline, "examples", number)
        given = {name: _spelled(loaded, value) for name, value in spec.inputs.items()}
        try:
            inputs = read_inputs(given, ports, remedy="add them to its inputs")
        except StageError as error:
            error.message = f"{loaded.where(path)}: {spell_path(path)}: {error.message}"
            raise
        yield Example(pipeline, number + 1, spec, inputs)


def _spelled(loaded: LoadedPlan, value: ExampleInputSpec) -> str:
    """Returns a value as `coordinator run --input` takes it."""
    if value.file is not None:
        return f"@{_path(loaded.folder, value.file)}"
    if value.text is not None:
        return f"text:{value.text}"
    number = value.number or 0.0
    return str(int(number)) if number.is_integer() else repr(number)


def _path(folder: Path, file: str) -> Path:
    """Returns a file below the folder of the plan; where it is not there, below the checkout."""
    beside = folder / file
    inside = checkout_root() / file
    return inside if inside.exists() and not beside.exists() else beside
