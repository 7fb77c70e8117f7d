"""Stages as a plan's author writes them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coordinator.facts.ids import ArtifactId
from coordinator.facts.ports import DataTypeName, PortType
from coordinator.plan.fields import (
    ArtifactChoice,
    CoresField,
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
    per_second: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Elements of the first dimension, or items where that is fixed, that play for a second."""

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
    """Time without progress after which the worker, or the stage's child, is taken as hung."""


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
    cores: CoresField = "auto"
    """Where its threads run: `auto` for cores of its own if they suffice, `shared`, or numbers."""
    pace: Literal["realtime"] | None = None
    """Write `realtime` when its output is played while it is made: executions take turns then."""
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

    @model_validator(mode="after")
    def _has_room_for_its_threads(self) -> Self:
        if isinstance(self.cores, tuple) and len(self.cores) < self.threads:
            raise ValueError(
                f"has {self.threads} threads on {len(self.cores)} cores;"
                " lower threads or name more cores"
            )
        return self

    @model_validator(mode="after")
    def _is_played_if_it_has_a_pace(self) -> Self:
        played = [name for name, port in self.outputs.items() if port.per_second is not None]
        if any(port.per_second is not None for port in self.inputs.values()):
            raise ValueError("has an input with per_second; only an output is played")
        if self.pace is None and played:
            raise ValueError(
                f"has per_second on {played[0]} but no pace; write pace: realtime, or remove it"
            )
        if self.pace is not None and len(played) != 1:
            raise ValueError(
                f"has pace: realtime and {len(played)} outputs with per_second;"
                " write per_second on the one that is played"
            )
        if any(not self.outputs[name].stream for name in played):
            raise ValueError(f"plays {played[0]}, which is no stream; write stream: true")
        return self

    @property
    def played_port(self) -> tuple[PortName, float] | None:
        """The output that is played while it is made, and its elements a second."""
        for name, port in self.outputs.items():
            if port.per_second is not None:
                return name, port.per_second
        return None

    @property
    def artifacts(self) -> tuple[ArtifactId, ...]:
        """Every artifact that it may run."""
        if self.artifact is None:
            return ()
        return (self.artifact,) if isinstance(self.artifact, str) else tuple(self.artifact.values())
