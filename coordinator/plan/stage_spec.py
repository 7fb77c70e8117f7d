"""Stages as a plan's author writes them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coordinator.facts.ids import ArtifactId
from coordinator.facts.ports import DataTypeName, PortType
from coordinator.plan.fields import (
    ArtifactChoice,
    DeviceName,
    Duration,
    ExtentField,
    GradeField,
    Options,
    PortName,
    Size,
    Word,
    WorkerName,
)
from coordinator.plan.ports import check_port_type
from coordinator.plan.spec import Spec

FUNCTION_EXECUTOR = "function"
"""The executor whose stages run a function that the worker ships."""


class PortSpec(Spec):
    """Which items a port takes or gives."""

    type: DataTypeName
    """Element type."""
    shape: tuple[ExtentField, ...] = ()
    """Extent of each dimension: a whole number, or `name<=N`; none for a single value."""
    stream: bool = False
    """Whether any number of items passes in one request; otherwise exactly one."""

    @model_validator(mode="after")
    def _keeps_limits(self) -> Self:
        try:
            check_port_type(self.port_type)
        except ValueError as error:
            raise ValueError(f"{error}; lower the bounds of its shape") from None
        return self

    @property
    def port_type(self) -> PortType:
        """The rules as the rest of the coordinator knows them."""
        return PortType(self.type, self.shape, self.stream)


class DeviceSpec(Spec):
    """On which devices a stage may run."""

    require: DeviceName | None = None
    """The only device allowed; nothing takes its place."""
    prefer: Annotated[tuple[DeviceName, ...], Field(min_length=1)] | None = None
    """Devices in the order to try; each one passed over is reported."""
    forbid: tuple[DeviceName, ...] = ()
    """Devices never used."""
    min_evidence: GradeField | None = None
    """Weakest grade of evidence that counts as proven: E, D, B, C or P."""
    min_share_on_target: Annotated[float, Field(ge=0, le=1)] | None = None
    """Smallest share of the work, from 0 to 1, that must run on the device itself."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.require is not None and self.prefer is not None:
            raise ValueError("has both require and prefer; write one of them")
        wanted = {self.require} if self.require else set(self.prefer or ())
        if both := sorted(wanted & set(self.forbid)):
            raise ValueError(f"allows and forbids {both[0]}; remove one of the two")
        return self


class MemorySpec(Spec):
    """Upper bounds of what a stage takes in its worker."""

    resident: Size = 0
    """Bytes while the stage is loaded."""
    load_peak: Size = Field(default_factory=lambda read: read.get("resident", 0))
    """Bytes at the highest moment of its load; `resident` when left out."""
    per_request: Size = 0
    """Bytes that each running request adds."""

    @model_validator(mode="after")
    def _peaks_at_the_top(self) -> Self:
        if self.load_peak < self.resident:
            raise ValueError("has a load_peak below resident; raise load_peak or leave it out")
        return self


class LimitsSpec(Spec):
    """How much a stage takes on at once and how long it may take."""

    concurrency: Annotated[int, Field(ge=1, le=64)] = 1
    """Executions that run at once."""
    queue: Annotated[int, Field(ge=0, le=1024)] = 8
    """Executions that may wait; one more is refused."""
    deadline: Duration = 30.0
    """Longest time of one execution from its start."""
    hang_timeout: Duration = 60.0
    """Time without progress after which the worker is taken as hung."""


class StageSpec(Spec):
    """One step of a pipeline, loaded and run as a unit."""

    executor: Word
    """How the worker runs it: `onnx`, `whisper`, `llamacpp`, `function`, `speech` ..."""
    artifact: ArtifactChoice | None = None
    """Name of its artifact, or one name for each device kind."""
    function: Word | None = None
    """Function that the worker ships; for the executor `function` alone."""
    options: Options = Field(default={})
    """Settings of the executor, passed on as they are."""
    workers: Annotated[tuple[WorkerName, ...], Field(min_length=1)]
    """Workers that may host it."""
    device: DeviceSpec = DeviceSpec()
    """On which devices it may run."""
    inputs: Mapping[PortName, PortSpec] = {}
    """Ports that take items."""
    outputs: Mapping[PortName, PortSpec] = {}
    """Ports that give items."""
    memory: MemorySpec = MemorySpec()
    """Upper bounds to reserve."""
    limits: LimitsSpec = LimitsSpec()
    """How much it takes on at once and how long it may take."""
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads of its native library."""
    keep: Literal["resident", "evictable"] = "resident"
    """Whether it may be unloaded to make room."""

    @model_validator(mode="after")
    def _names_what_it_runs(self) -> Self:
        if self.executor == FUNCTION_EXECUTOR and self.function is None:
            raise ValueError("has the executor function but no function; name one")
        if self.executor != FUNCTION_EXECUTOR and self.function is not None:
            raise ValueError(
                f"names a function for the executor {self.executor};"
                " remove it, or write executor: function"
            )
        if len(set(self.workers)) < len(self.workers):
            raise ValueError("names a worker twice; remove one")
        return self

    @property
    def artifacts(self) -> tuple[ArtifactId, ...]:
        """Every artifact that it may run."""
        if self.artifact is None:
            return ()
        return (self.artifact,) if isinstance(self.artifact, str) else tuple(self.artifact.values())
