"""The fake that ships: it conforms, answers every kind of port, and does the harm it is told to."""

import numpy as np
import pytest

from stagewire import bits
from stagewire.errors import FieldInvalidError, LoadFailedError, OutputContractError
from stagewire.ports import Dimension, Port
from stagewire.tensor import BitsArray, DataType, encode
from stagewire.worker.executor import StageOrder
from stagewire.worker.fake import NAMES, FakeExecutor, small_item
from stagewire.worker.local_execution import LocalExecution
from stagewire.worker.stages import prove_stage

pytestmark = pytest.mark.unit

FLOATS = Port("x", DataType.FLOAT32, (Dimension("n", 8),), True)
ONE = Port("y", DataType.FLOAT32, (Dimension("n", 8),), False)
ITEM = np.arange(4, dtype=np.float32)


def load(*script, inputs=(FLOATS,), outputs=(ONE,)):
    options = {"script": list(script)} if script else {}
    order = StageOrder("one", "fake", "cpu", inputs=inputs, outputs=outputs, options=options)
    return order, FakeExecutor().load(order, lambda _: None)


def run(order, stage, *values):
    execution = LocalExecution(order, deadline_seconds=60)
    execution.feed_all({order.inputs[0].name: list(values)})
    execution.run(stage)
    return execution.outputs


@pytest.mark.parametrize("data_type", DataType)
@pytest.mark.parametrize("shape", [(), (Dimension("", 3),), (Dimension("n", 5), Dimension("", 2))])
def test_a_small_item_fits_every_kind_of_port(data_type, shape):
    port = Port("y", data_type, shape, False)
    order, stage = load(outputs=(port,))

    assert "1 on y" in prove_stage(stage, order)


def test_it_takes_the_place_of_every_executor():
    for name in NAMES:
        assert all(row.executor == name for row in FakeExecutor(name).describe())


def test_an_output_takes_over_the_items_of_its_own_type():
    order, stage = load(outputs=(Port("y", DataType.FLOAT32, FLOATS.dimensions, True),))

    assert [value.tolist() for value in run(order, stage, ITEM, ITEM * 2)["y"]] == [
        ITEM.tolist(),
        (ITEM * 2).tolist(),
    ]


@pytest.mark.parametrize("has_library", [True, False])
@pytest.mark.parametrize("data_type", DataType)
def test_it_echoes_items_of_every_type(monkeypatch, data_type, has_library):
    if not has_library:
        monkeypatch.setattr(bits, "_number_type", lambda _: None)
    rules = (Dimension("", 3), Dimension("n", 8))
    inputs, outputs = Port("x", data_type, rules, True), Port("y", data_type, rules, True)
    order, stage = load(inputs=(inputs,), outputs=(outputs,))
    value = small_item(Port("x", data_type, (Dimension("", 3), Dimension("", 5))))

    [back] = run(order, stage, value)["y"]
    assert encode(back)[0] == encode(value)[0]
    assert bytes(encode(back)[1]) == bytes(encode(value)[1])
    assert isinstance(back, BitsArray) == (not has_library and data_type in bits.STORAGE)


def test_nan_comes_out_where_it_was_told_to():
    order, stage = load({"do": "nan"})

    [value] = run(order, stage, ITEM)["y"]
    assert np.isnan(value).all()


@pytest.mark.parametrize("do", ["wrong_shape", "wrong_type"])
def test_a_spoiled_output_breaks_its_port(do):
    order, stage = load({"do": do})

    with pytest.raises(OutputContractError):
        run(order, stage, ITEM)


def test_harm_waits_for_its_item():
    order, stage = load({"do": "raise", "after": 2})

    run(order, stage, ITEM, ITEM)
    with pytest.raises(RuntimeError):
        run(order, stage, ITEM)


def test_the_example_does_no_harm():
    order, stage = load({"do": "crash"}, {"do": "exit"}, {"do": "hang"})

    prove_stage(stage, order)


def test_a_load_is_refused_when_the_script_says_so():
    with pytest.raises(LoadFailedError):
        load({"do": "refuse", "on": "load"})


@pytest.mark.parametrize(
    "line", [{"do": "juggle"}, {"do": "crash", "on": "tuesday"}, {"do": "crash", "x": 1}, {}]
)
def test_a_script_that_cannot_be_read_is_refused(line):
    with pytest.raises(FieldInvalidError):
        load(line)


def test_small_items_are_small():
    assert small_item(FLOATS).nbytes <= 64
