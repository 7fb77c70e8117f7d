"""The suite that every executor passes: what a host relies on, checked against a real stage.

It needs no test framework. With pytest, each check becomes one test:

    @pytest.fixture(scope="module")
    def trial():
        with Trial(MyExecutor, order, inputs) as opened:
            yield opened

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_the_executor_conforms(trial, check):
        check(trial)
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stagewire.errors import OutputContractError, StageError
from stagewire.tensor import Value, encode
from stagewire.worker.executor import StageOrder
from stagewire.worker.local_execution import LocalExecution
from stagewire.worker.trial import ConformanceError, Trial, require

__all__ = ["CHECKS", "ConformanceError", "LocalExecution", "Trial"]

_DESCRIBE_SECONDS: Final = 2.0


def check_describe_is_cheap_and_consistent(trial: Trial) -> None:
    """`describe` names the executor, says the same twice, imports nothing and returns at once."""
    executor = trial.make_executor()
    before = set(sys.modules)
    began = time.monotonic()
    rows = list(executor.describe())
    took = time.monotonic() - began
    imported = {name.partition(".")[0] for name in set(sys.modules) - before}
    foreign = imported - set(sys.stdlib_module_names) - {"stagewire"}
    require(not foreign, f"describe imported {', '.join(sorted(foreign))}")
    require(took < _DESCRIBE_SECONDS, f"describe took {took:.1f} s")
    require(rows == list(executor.describe()), "describe gave two different answers")
    require(bool(rows), "describe gave no row")
    require(all(row.executor == executor.name for row in rows), "a row names another executor")
    row = next((row for row in rows if row.device == trial.order.device), None)
    if row is None:
        raise ConformanceError(f"describe has no row for the device {trial.order.device!r}")
    require(not row.unavailable_reason, f"the executor is unavailable: {row.unavailable_reason}")
    require(
        not trial.order.artifact_format or trial.order.artifact_format in row.formats,
        f"describe lacks the format {trial.order.artifact_format!r} that load accepts",
    )
    require(
        not trial.order.function or trial.order.function in row.functions,
        f"describe lacks the function {trial.order.function!r} that load accepts",
    )
    executor.close()


def check_a_load_reports_progress_and_threads(trial: Trial) -> None:
    """A load says what it does, and the stage says which threads are in force."""
    require(bool(trial.phases), "load reported no progress")
    require(all(trial.phases), "load reported an empty phase")
    settings = trial.stage.thread_settings
    require(bool(settings), "thread_settings is empty")
    require(
        all(isinstance(item, str) for pair in settings.items() for item in pair),
        "thread_settings must map texts to texts",
    )


def check_an_unknown_option_is_refused(trial: Trial) -> None:
    """An order with an option that nobody knows is refused with a typed failure."""
    order = StageOrder(
        **{name: getattr(trial.order, name) for name in StageOrder.__slots__}
        | {"options": {**trial.order.options, "no-such-option": 1}}
    )
    executor = trial.make_executor()
    try:
        stage = executor.load(order, lambda _: None)
    except StageError as error:
        require("no-such-option" in error.message, f"the refusal does not name it: {error}")
    else:
        stage.release()
        raise ConformanceError("an unknown option was accepted")
    finally:
        executor.close()


def check_the_example_runs(trial: Trial) -> None:
    """The stage runs on its own example, which fits its ports."""
    example = trial.stage.example()
    require(set(example) == {port.name for port in trial.order.inputs}, "example lacks a port")
    trial.complete(example, "the example")


def check_outputs_obey_the_ports(trial: Trial) -> None:
    """The given inputs produce items that fit the ports, and do not change once sent."""
    outputs = trial.complete(trial.inputs, "the inputs")
    require(any(outputs.values()), "the inputs produced no item")


def check_two_runs_are_independent(trial: Trial) -> None:
    """Two runs after one another both work, and agree where the stage is deterministic."""
    first = trial.complete(trial.inputs, "the first run")
    second = trial.complete(trial.inputs, "the second run")
    if trial.is_deterministic:
        require(_same(first, second), "two runs on equal inputs gave different outputs")


def check_outputs_wait_for_credit(trial: Trial) -> None:
    """A run whose outputs have no credit sends nothing, and goes on once it has some."""
    execution = LocalExecution(trial.order, credit=0)
    execution.feed_all(trial.inputs)
    run = trial.start(execution)
    require(not any(execution.outputs.values()), "an item left without credit")
    execution.grant(1 << 20)
    run.expect_return("credit came late")


def check_streams_without_items_end(trial: Trial) -> None:
    """A run whose streams end at once ends as well."""
    streams = {port.name for port in trial.order.inputs if port.is_stream}
    if not streams:
        return
    inputs = {name: () if name in streams else items for name, items in trial.inputs.items()}
    if trial.accepts_no_items:
        trial.complete(inputs, "streams without items")
        return
    execution = LocalExecution(trial.order)
    execution.feed_all(inputs)
    error = trial.start(execution).wait("streams without items")
    require(isinstance(error, StageError), f"streams without items must be refused, not {error!r}")


def check_a_cancel_ends_a_wait_for_input(trial: Trial) -> None:
    """A run that waits for its first item ends when it is cancelled."""
    execution = LocalExecution(trial.order)
    run = trial.start(execution)
    execution.cancel()
    run.expect_ended("cancelled before any input")


def check_a_cancel_ends_a_wait_for_credit(trial: Trial) -> None:
    """A run that waits for credit ends when it is cancelled."""
    execution = LocalExecution(trial.order, credit=0)
    execution.feed_all(trial.inputs)
    run = trial.start(execution)
    execution.cancel()
    run.expect_ended("cancelled without credit")


def check_a_cancel_between_items_ends_the_run(trial: Trial) -> None:
    """A run that has sent an item and is to send more ends when it is cancelled."""
    streams = [port.name for port in trial.order.outputs if port.is_stream]
    total = sum(len(items) for items in trial.complete(trial.inputs, "the inputs").values())
    if not streams or total < 2:  # noqa: PLR2004 - between two items
        return
    execution = LocalExecution(trial.order, credit=1)
    execution.feed_all(trial.inputs)
    run = trial.start(execution)
    for name in streams:
        if execution.take(name, trial.patience_seconds) is not None:
            break
    execution.cancel()
    run.expect_ended("cancelled between two items")


def check_a_deadline_ends_the_run(trial: Trial) -> None:
    """A run whose deadline has passed ends like a cancelled one."""
    execution = LocalExecution(trial.order, deadline_seconds=0.0)
    execution.feed_all(trial.inputs)
    trial.start(execution).expect_ended("the deadline had passed")


def check_a_failed_run_leaves_the_next_one_working(trial: Trial) -> None:
    """What a refused output raises passes through the run, and the stage goes on to work."""
    execution = LocalExecution(trial.order, refuses_outputs=True)
    execution.feed_all(trial.inputs)
    error = trial.start(execution).wait("an output was refused")
    require(
        isinstance(error, OutputContractError),
        f"the run must pass on what `send` raised, it ended with {error!r}",
    )
    check_outputs_obey_the_ports(trial)


def check_release_then_load_again(trial: Trial) -> None:
    """A second stage of the same order loads, runs, and is released before its executor closes."""
    with Trial(
        trial.make_executor, trial.order, trial.inputs, patience_seconds=trial.patience_seconds
    ) as again:
        again.complete(again.stage.example(), "the example of a second stage")
    check_the_example_runs(trial)


CHECKS: Final[tuple[Callable[[Trial], None], ...]] = (
    check_describe_is_cheap_and_consistent,
    check_a_load_reports_progress_and_threads,
    check_an_unknown_option_is_refused,
    check_the_example_runs,
    check_outputs_obey_the_ports,
    check_two_runs_are_independent,
    check_outputs_wait_for_credit,
    check_streams_without_items_end,
    check_a_cancel_ends_a_wait_for_input,
    check_a_cancel_ends_a_wait_for_credit,
    check_a_cancel_between_items_ends_the_run,
    check_a_deadline_ends_the_run,
    check_a_failed_run_leaves_the_next_one_working,
    check_release_then_load_again,
)


def _same(first: Mapping[str, Sequence[Value]], second: Mapping[str, Sequence[Value]]) -> bool:
    return all(
        [bytes(encode(value)[1]) for value in first[port]]
        == [bytes(encode(value)[1]) for value in second[port]]
        for port in first
    )
