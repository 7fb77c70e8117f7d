"""The proof of a stage: its example runs in this process, and what comes out fits its ports."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from stagewire.errors import OutputContractError, StageFaultError, TensorMismatchError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb
from stagewire.worker import stages
from stagewire.worker.executor import StageOrder
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.memory import make_meter
from stagewire.worker.stages import Stages, prove_stage

pytestmark = pytest.mark.unit

ROW = (Dimension("", 2),)
ORDER = StageOrder(
    "adder",
    "test",
    "cpu",
    inputs=(Port("rows", DataType.FLOAT32, ROW, is_stream=True),),
    outputs=(
        Port("doubled", DataType.FLOAT32, ROW, is_stream=True),
        Port("total", DataType.FLOAT32, ROW),
    ),
)


def row(*values):
    return np.array(values, np.float32)


def double_and_add(execution):
    total = row(0, 0)
    for value in execution.items("rows"):
        execution.check()
        execution.send("doubled", value * 2)
        total = total + value
    execution.send("total", total)


@dataclass
class Stage:
    """A stage that runs a function."""

    run: object = double_and_add
    rows: list = field(default_factory=lambda: [row(1, 2), row(3, 4), row(5, 6)])
    thread_settings = {"test": "1"}  # noqa: RUF012 - a constant

    def example(self):
        return {"rows": self.rows}

    def release(self):
        pass


def test_a_proof_says_what_came_out_of_the_example():
    assert prove_stage(Stage(), ORDER) == "items out: 3 on doubled, 1 on total"


def test_a_stage_without_outputs_is_proved_too():
    order = StageOrder("sink", "test", "cpu", inputs=ORDER.inputs)

    assert prove_stage(Stage(lambda execution: None), order) == "items out: none"


def test_a_proof_has_no_deadline():
    seen = []

    def look(execution):
        seen.append(execution.remaining_seconds)
        execution.send("total", row(0, 0))

    prove_stage(Stage(look), ORDER)

    assert seen == [float("inf")]


def test_the_example_arrives_as_it_would_over_the_wire():
    rows = [row(1, 2)]

    def write(execution):
        execution.receive("rows")[0] = 9

    with pytest.raises(ValueError, match="read-only"):
        prove_stage(Stage(write, rows), ORDER)
    assert rows[0].tolist() == [1, 2]


def test_an_example_that_does_not_fit_its_port_proves_nothing():
    with pytest.raises(TensorMismatchError, match="'rows'"):
        prove_stage(Stage(rows=[row(1, 2, 3)]), ORDER)


def test_a_port_without_its_item_is_a_broken_contract():
    with pytest.raises(OutputContractError, match="without an item on 'total'"):
        prove_stage(Stage(lambda execution: list(execution.items("rows"))), ORDER)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ([("total", row(1, 2)), ("total", row(1, 2))], "no stream and got a second item"),
        ([("total", row(1, 2, 3))], "'total'"),
        ([("total", "text")], "'total'"),
        ([("other", row(1, 2))], "no output port 'other'"),
    ],
)
def test_an_item_that_breaks_its_port_is_a_broken_contract(sent, reason):
    def send(execution):
        for port, value in sent:
            execution.send(port, value)

    with pytest.raises(OutputContractError, match=reason):
        prove_stage(Stage(send), ORDER)


def test_an_item_that_is_changed_once_sent_is_a_broken_contract():
    def reuse(execution):
        buffer = row(0, 0)
        for value in execution.items("rows"):
            buffer[:] = value
            execution.send("doubled", buffer)
        execution.send("total", row(0, 0))

    with pytest.raises(OutputContractError, match="changed once sent"):
        prove_stage(Stage(reuse), ORDER)


def test_a_stage_that_never_stops_sending_is_stopped(monkeypatch):
    monkeypatch.setattr(stages, "TENSOR_BYTES", 80)
    sent = []

    def send_for_ever(execution):
        while True:
            execution.send("doubled", row(1, 2))
            sent.append(1)

    with pytest.raises(OutputContractError, match="more than may be kept"):
        prove_stage(Stage(send_for_ever), ORDER)
    assert len(sent) == 10


def test_a_failure_of_the_stage_passes_through_the_proof():
    def fail(execution):
        raise StageFaultError("the library failed")

    with pytest.raises(StageFaultError, match="the library failed"):
        prove_stage(Stage(fail), ORDER)


def make_stages(executor):
    return Stages([executor], outbox=None, meter=make_meter(), ended=lambda *_: None)


@pytest.fixture
def loaded():
    """The fake executor with a stage."""
    made = make_stages(FakeExecutor())
    text = pb.LoadStage(stage_id="echo", executor="fake", device="cpu")
    port = {"name": "text", "data_type": int(DataType.UTF8), "is_stream": True}
    text.inputs.add(**port)
    text.outputs.add(**port)
    assert made.load(text, lambda _: None).WhichOneof("message") == "stage_loaded"
    yield made
    for stage_id in list(made.lanes):
        made.release(stage_id)


def test_the_answer_to_an_order_to_prove_carries_the_evidence(loaded):
    answer = loaded.prove("echo").stage_proved

    assert answer.stage_id == "echo"
    assert answer.verdict == capability_pb2.VERDICT_FULL
    assert answer.grade == capability_pb2.GRADE_B
    assert answer.evidence.endswith("items out: 1 on text")


def test_a_stage_that_is_not_loaded_is_not_proved(loaded):
    answer = loaded.prove("other").fault

    assert answer.failure.reason == "STAGE_NOT_RESIDENT"


def test_a_lookup_that_fails_inside_a_stage_is_not_taken_for_an_absent_stage(loaded, caplog):
    def fail(execution):
        raise KeyError("weights")

    loaded.lanes["echo"].stage = Stage(fail, rows=[])
    loaded.orders["echo"] = ORDER

    answer = loaded.prove("echo").fault

    assert answer.failure.reason == "LOAD_FAILED"
    assert "KeyError: 'weights'" in caplog.text


def test_a_stage_that_could_go_on_for_long_is_ended_after_a_few_items():
    order = StageOrder(
        "writer", "test", "cpu", inputs=ORDER.inputs, outputs=(Port("y", DataType.UTF8, (), True),)
    )
    ended = []

    def write(execution):
        try:
            while True:
                execution.send("y", "word")
        finally:
            ended.append(True)

    assert prove_stage(Stage(write), order) == "items out: 4 on y"
    assert ended == [True]
