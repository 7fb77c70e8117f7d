"""The plan as its author writes it: field names, types, defaults and the rules within one entry.

Read by `coordinator.plan.loading`, which adds the rules between entries. Sizes are bytes and
durations seconds once a plan is read.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coordinator.plan.artifact_spec import ArtifactSpec, ExamplesSpec, FileSpec
from coordinator.plan.example_spec import ExampleInputSpec, ExampleSpec, ExpectationSpec
from coordinator.plan.fields import (
    ArtifactName,
    InterpreterPath,
    Line,
    PipelineName,
    PortReference,
    Size,
    StageName,
    ValueName,
    Word,
    WorkerName,
)
from coordinator.plan.spec import Spec
from coordinator.plan.stage_spec import (
    FUNCTION_EXECUTOR,
    DeviceSpec,
    LimitsSpec,
    MemorySpec,
    PortSpec,
    StageSpec,
)

__all__ = [
    "FUNCTION_EXECUTOR",
    "ArtifactSpec",
    "DeviceSpec",
    "ExampleInputSpec",
    "ExampleSpec",
    "ExamplesSpec",
    "ExpectationSpec",
    "FileSpec",
    "InterpreterSpec",
    "LimitsSpec",
    "MemorySpec",
    "MetadataSpec",
    "PipelineSpec",
    "Plan",
    "PoliciesSpec",
    "PortSpec",
    "Spec",
    "StageSpec",
    "TransportSpec",
    "WorkerMemorySpec",
    "WorkerSpec",
]

_MiB = 1 << 20


class MetadataSpec(Spec):
    """Names the plan."""

    name: Word
    """Name shown by `coordinator status`."""
    description: str = ""
    """What the plan is for."""


class TransportSpec(Spec):
    """How tensors travel between workers."""

    arena: Size | None = None
    """Shared memory for payloads; without it they travel inside messages."""


class InterpreterSpec(Spec):
    """An existing Python interpreter, by operating system."""

    linux: InterpreterPath | None = None
    """Absolute path of the interpreter."""
    windows: InterpreterPath | None = None
    """Absolute path of the interpreter, or `auto`."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.linux is None and self.windows is None:
            raise ValueError("names no interpreter; write linux or windows")
        return self


class WorkerMemorySpec(Spec):
    """What the process of a worker takes before it loads a stage."""

    resident: Size = 90 * _MiB
    """Bytes of the bare process."""


class WorkerSpec(Spec):
    """One process that hosts stages, in an environment of its own."""

    kind: Word
    """Which worker it is; the process is started as `python -m worker_KIND`."""
    environment: Line | None = None
    """Folder of the worker's project and lock, from which its environment is built."""
    interpreter: InterpreterSpec | None = None
    """An existing interpreter that has the worker installed, in place of `environment`."""
    optional: bool = False
    """Whether the plan is carried out without it when it cannot start."""
    memory: WorkerMemorySpec = WorkerMemorySpec()
    """What the bare process takes."""

    @model_validator(mode="after")
    def _has_one_environment(self) -> Self:
        if (self.environment is None) == (self.interpreter is None):
            raise ValueError("needs either environment or interpreter; write exactly one of them")
        return self


class PipelineSpec(Spec):
    """The graph of stages that answers one kind of request."""

    inputs: Mapping[ValueName, PortReference] = {}
    """What a client sends, and the input port that takes it."""
    edges: tuple[tuple[PortReference, PortReference], ...] = ()
    """Pairs of an output port and the input port that takes its items."""
    outputs: Annotated[Mapping[ValueName, PortReference], Field(min_length=1)]
    """What a client gets, and the output port that gives it."""
    examples: Annotated[tuple[ExampleSpec, ...], Field(max_length=100)] = ()
    """Requests by which `coordinator accept` judges it."""


class PoliciesSpec(Spec):
    """What placement optimises and keeps free."""

    objective: Literal["latency"] = "latency"
    """What makes one placement better than another."""
    os_reserve: Size = 2048 * _MiB
    """Memory of the machine that is never promised."""


class Plan(Spec):
    """A whole plan file."""

    api_version: Literal["stagewire/v1"] = Field(alias="apiVersion")
    """Version of this schema."""
    kind: Literal["Plan"]
    """What the file is."""
    metadata: MetadataSpec
    """Names the plan."""
    transport: TransportSpec = TransportSpec()
    """How tensors travel between workers."""
    artifacts: Mapping[ArtifactName, ArtifactSpec] = {}
    """Models by name."""
    workers: Annotated[Mapping[WorkerName, WorkerSpec], Field(min_length=1)]
    """Processes by name."""
    stages: Annotated[Mapping[StageName, StageSpec], Field(min_length=1)]
    """Steps by name."""
    pipelines: Annotated[Mapping[PipelineName, PipelineSpec], Field(min_length=1)]
    """Graphs of stages by name."""
    policies: PoliciesSpec = PoliciesSpec()
    """What placement optimises and keeps free."""
