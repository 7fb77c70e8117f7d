"""A stage on trial: loaded as a host would load it, run on threads, released at the end."""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from stagewire.errors import OutputContractError
from stagewire.tensor import Value
from stagewire.worker.executor import ExecutionEnded, Executor, LoadedStage, StageOrder
from stagewire.worker.local_execution import LocalExecution


class ConformanceError(AssertionError):
    """An executor broke a rule that its host relies on."""


def require(is_met: bool, rule: str) -> None:
    """Raises ConformanceError with a rule that is not met."""
    if not is_met:
        raise ConformanceError(rule)


class _Run:
    """A run of a stage on a thread of its own, as on a lane."""

    def __init__(self, trial: "Trial", execution: LocalExecution) -> None:
        self._trial = trial
        self._execution = execution
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="conformance-lane", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._execution.run(self._trial.stage)
        except BaseException as error:  # handed to the thread that waits
            self._error = error

    def wait(self, what: str) -> BaseException | None:
        """Waits for the end; returns what the run raised."""
        self._thread.join(self._trial.patience_seconds)
        require(not self._thread.is_alive(), f"the run did not end: {what}")
        return self._error

    def expect_return(self, what: str) -> None:
        """Waits for the end; the run must have returned and kept the rules of its ports."""
        error = self.wait(what)
        if error is not None:
            raise ConformanceError(f"{what}: the run raised {error!r}") from error
        try:
            self._execution.conclude()
        except OutputContractError as breach:
            raise ConformanceError(f"{what}: {breach.message}") from breach

    def expect_ended(self, what: str) -> None:
        """Waits for the end, which must be that of a cancelled execution."""
        error = self.wait(what)
        require(
            isinstance(error, ExecutionEnded),
            f"{what}: the run must let ExecutionEnded pass, it ended with {error!r}",
        )


class Trial:
    """One stage of an executor and inputs for it; a context manager that loads and releases it."""

    def __init__(
        self,
        make_executor: Callable[[], Executor],
        order: StageOrder,
        inputs: Mapping[str, Sequence[Value]],
        *,
        is_deterministic: bool = True,
        accepts_no_items: bool = True,
        patience_seconds: float = 120.0,
    ) -> None:
        """Takes a stage on trial.

        Args:
            make_executor: Makes an executor; called more than once.
            order: The stage.
            inputs: Items for each input port, enough to produce at least one output item.
            is_deterministic: Whether equal inputs give equal outputs.
            accepts_no_items: Whether streams without items are a run like any other.
            patience_seconds: Time after which a wait counts as endless.
        """
        self.make_executor = make_executor
        self.order = order
        self.inputs = inputs
        self.is_deterministic = is_deterministic
        self.accepts_no_items = accepts_no_items
        self.patience_seconds = patience_seconds
        self.phases: list[str] = []
        self._executor: Executor | None = None
        self._stage: LoadedStage | None = None

    def __enter__(self) -> "Trial":
        self._executor = self.make_executor()
        self._stage = self._executor.load(self.order, self.phases.append)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stage, executor = self._stage, self._executor
        self._stage = self._executor = None
        if stage is not None:
            stage.release()
        if executor is not None:
            executor.close()

    @property
    def stage(self) -> LoadedStage:
        """The loaded stage."""
        if self._stage is None:
            raise ConformanceError("a trial is a context manager; enter it first")
        return self._stage

    def start(self, execution: LocalExecution) -> _Run:
        """Starts a run on a thread of its own."""
        return _Run(self, execution)

    def complete(self, inputs: Mapping[str, Sequence[Value]], what: str) -> dict[str, list[Value]]:
        """Runs to the end and returns the outputs."""
        execution = LocalExecution(self.order)
        execution.feed_all(inputs)
        self.start(execution).expect_return(what)
        return execution.outputs
