"""The conformance suite finds what it looks for."""

import numpy as np
import pytest

from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import (
    ConformanceError,
    LocalExecution,
    Trial,
    check_a_failed_run_leaves_the_next_one_working,
    check_outputs_obey_the_ports,
)
from stagewire.worker.executor import StageOrder
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.order import library_capability

pytestmark = pytest.mark.unit

PORT = Port("rows", DataType.FLOAT32, (Dimension("", 2),), is_stream=True)
TOTAL = Port("total", DataType.FLOAT32, (Dimension("", 2),))
ORDER = StageOrder("rows", "fake", "cpu", inputs=(PORT,), outputs=(PORT, TOTAL))
INPUTS = {"rows": [np.array([number, number], np.float32) for number in range(3)]}


class Runs(FakeExecutor):
    """The fake executor with stages that run a function."""

    def __init__(self, run):
        super().__init__()
        self._run = run

    def load(self, order, progress):
        stage = super().load(order, progress)

        class Stage(type(stage)):
            def run(_, execution):
                self._run(execution)

        return Stage(order, ())


def trial_of(run):
    return Trial(lambda: Runs(run), ORDER, INPUTS)


def test_a_stage_that_keeps_the_rules_passes():
    with Trial(FakeExecutor, ORDER, INPUTS) as trial:
        check_outputs_obey_the_ports(trial)
        check_a_failed_run_leaves_the_next_one_working(trial)


def test_a_buffer_that_is_used_again_is_found():
    def reuse(execution):
        buffer = np.zeros(2, np.float32)
        for item in execution.items("rows"):
            buffer[:] = item
            execution.send("rows", buffer)
        execution.send("total", np.zeros(2, np.float32))

    with trial_of(reuse) as trial, pytest.raises(ConformanceError, match="changed once sent"):
        check_outputs_obey_the_ports(trial)


def test_a_port_that_stays_empty_is_found():
    def forget(execution):
        for item in execution.items("rows"):
            execution.send("rows", item)

    with trial_of(forget) as trial, pytest.raises(ConformanceError, match="item on 'total'"):
        check_outputs_obey_the_ports(trial)


def test_a_stage_that_swallows_the_refusal_of_an_output_is_found():
    def swallow(execution):
        for item in execution.items("rows"):
            try:
                execution.send("rows", item)
            except Exception:
                return
        execution.send("total", np.zeros(2, np.float32))

    with trial_of(swallow) as trial, pytest.raises(ConformanceError, match="pass on"):
        check_a_failed_run_leaves_the_next_one_working(trial)


def test_an_item_that_never_comes_is_not_waited_for_without_end():
    execution = LocalExecution(ORDER)

    with pytest.raises(TimeoutError, match="'total'"):
        execution.take("total", timeout_seconds=0)


def test_a_library_that_is_there_is_described_by_its_version():
    row = library_capability("arrays", ("npy:any",), "numpy", "numpy")

    assert row.executor == "arrays"
    assert row.device == "cpu"
    assert row.formats == ("npy:any",)
    assert row.library_version == np.__version__
    assert row.unavailable_reason == ""


def test_a_library_that_is_missing_is_described_by_the_remedy():
    row = library_capability("arrays", ("npy:any",), "no-such-library", "no_such_library")

    assert row.library_version == ""
    assert row.unavailable_reason.startswith("no-such-library is not installed")
    assert "build it from its lock" in row.unavailable_reason
