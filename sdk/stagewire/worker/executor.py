"""What an executor is: the Protocol between the host of a worker and a library that runs models.

The host calls an executor from threads of its own, never from its event loop: `load`, `prove` and
`release` one at a time for the whole worker, `run` on the lane of the stage.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from stagewire.errors import StageError
from stagewire.ports import Dimension, Port
from stagewire.tensor import Value

__all__ = [
    "Capability",
    "Dimension",
    "Execution",
    "ExecutionEnded",
    "Executor",
    "LoadedStage",
    "Port",
    "Progress",
    "Session",
    "StageOrder",
]

Progress: TypeAlias = Callable[[str], None]
"""Called with a phrase such as "reading weights" whenever a load has come further."""


class ExecutionEnded(Exception):  # noqa: N818 - an outcome, not an error
    """The execution was cancelled or its deadline passed; let it pass through `run`."""


@dataclass(frozen=True, slots=True)
class StageOrder:
    """What a worker is told about a stage that it shall load."""

    stage_id: str
    executor: str
    device: str
    artifact_format: str = ""
    """Such as `onnx:fp32`; empty for a stage without an artifact."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Verified files of the artifact by their path in the plan."""
    function: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the executor as the plan states them (JSON values, hence Any)."""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    thread_count: int = 1
    concurrency: int = 1
    budget_bytes: int = 0
    """Most that the plan lets the stage take, its requests included; 0 where nobody said."""
    hang_timeout_seconds: float = math.inf
    """Time without a step after which the stage counts as hung."""


@dataclass(frozen=True, slots=True)
class Capability:
    """What one executor can run on one device."""

    executor: str
    device: str
    formats: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    library_version: str = ""
    unavailable_reason: str = ""
    """Why it cannot run anything, and what to change; empty when it can."""


class Session(Protocol):
    """What one stage keeps for one session, from one execution to the next.

    Executions of a session run one at a time. The state ends with the session, with the stage and
    with the worker, so an executor must do without it at any time.
    """

    @property
    def state(self) -> object | None:
        """What was kept last; None at the beginning of the session."""

    def keep(
        self, state: object, *, size_bytes: int, close: Callable[[], None] | None = None
    ) -> None:
        """Keeps a state for the next execution, in place of the one before.

        `size_bytes` is what it takes, as the executor knows best. `close` frees it: called once,
        on any thread, when another state replaces it or the session has ended.

        Raises:
            stagewire.errors.StageFaultError: it is over the limit of a state.
        """


class Execution(Protocol):
    """One run of one stage for one request, as an executor sees it."""

    @property
    def remaining_seconds(self) -> float:
        """Time until the deadline; infinite when there is none."""

    @property
    def has_ended(self) -> bool:
        """Whether it was cancelled or its deadline passed. To look is no step of the run."""

    @property
    def session(self) -> Session | None:
        """What the stage keeps for the session of the request; None when it belongs to none."""

    def receive(self, port: str) -> Value | None:
        """Waits for the next item of an input port; None after the last one.

        Arrays are read-only views. Received items are acknowledged when the next one is asked for.

        Raises:
            ExecutionEnded: the execution was cancelled or its deadline passed.
        """

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""

    def send(self, port: str, value: Value) -> None:
        """Sends one item on an output port, waiting for credit; it must not change afterwards.

        Raises:
            stagewire.errors.OutputContractError: the value breaks the rules of the port.
            ExecutionEnded: the execution was cancelled or its deadline passed.
        """

    def check(self) -> None:
        """Returns while the execution goes on; call it between steps of long work.

        Raises:
            ExecutionEnded: the execution was cancelled or its deadline passed.
        """

    def give_up(self, failure: StageError) -> None:
        """Ends every wait of the run with a failure: what computed for it is gone. Any thread."""


class LoadedStage(Protocol):
    """A stage that is resident."""

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Thread counts in force, as read back from the library where it allows that."""

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns items for each input port that prove the stage by one run. Small and quick."""

    def run(self, execution: Execution) -> None:
        """Runs one execution to its end: receives until the ports end, sends what comes out.

        Returning ends every output port. Must call `check`, `receive` or `send` between steps, so
        that a cancel takes effect. Anything that is raised fails the execution alone, never the
        worker.
        """

    def release(self) -> None:
        """Frees everything that `load` took. Called once."""


class Executor(Protocol):
    """How a worker runs artifacts of some formats.

    Constructing one must be cheap: libraries are imported inside `load`.
    """

    @property
    def name(self) -> str:
        """Name in plans, such as `whisper`."""

    def describe(self) -> Sequence[Capability]:
        """Says what can be run here, one row a device, without loading anything."""

    def load(self, order: StageOrder, progress: Progress) -> LoadedStage:
        """Loads a stage inside its reservation.

        Raises:
            stagewire.errors.StageError: the order cannot be carried out; the message says why.
        """

    def close(self) -> None:
        """Frees what the executor itself holds. Every stage was released before."""
