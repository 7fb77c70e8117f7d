"""Outputs of graphs that are reduced to where they are largest."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from stagewire.errors import FieldInvalidError, OutputContractError, StageError, TensorMismatchError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import LocalExecution, Trial
from stagewire.worker.executor import StageOrder
from worker_cpu.onnx import OnnxExecutor

pytestmark = pytest.mark.integration

ROWS = (Dimension("rows", 8),)
X = Port("x", DataType.FLOAT32, (*ROWS, Dimension("columns", 16)), is_stream=True)
INDEX = Port("scores_index", DataType.INT64, ROWS, is_stream=True)
VALUE = Port("scores_value", DataType.FLOAT32, ROWS, is_stream=True)
SCORES = replace(X, name="scores")
TWICE = replace(X, name="twice")


@pytest.fixture(scope="module")
def order(tmp_path_factory) -> StageOrder:
    """A graph with its input as one output, and twice that as another."""

    def tensor(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", "columns"])

    nodes = [
        helper.make_node("Identity", ["x"], ["scores"]),
        helper.make_node("Add", ["x", "x"], ["twice"]),
    ]
    graph = helper.make_graph(nodes, "two", [tensor("x")], [tensor("scores"), tensor("twice")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("two") / "two.onnx"
    onnx.save(model, str(path))
    return StageOrder(
        "score",
        "onnx",
        "cpu",
        artifact_format="onnx:fp32",
        files={"two.onnx": path},
        options={"largest": ["scores"], "example_extents": {"columns": 4}},
        inputs=(X,),
        outputs=(INDEX, VALUE),
    )


def run(order: StageOrder, *items) -> dict[str, list]:
    with Trial(OnnxExecutor, order, {}) as trial:
        return trial.complete({"x": [np.array(item, np.float32) for item in items]}, "items")


def refusal(order: StageOrder) -> StageError:
    with pytest.raises(StageError) as caught:
        OnnxExecutor().load(order, lambda _: None)
    return caught.value


def test_an_output_is_reduced_to_where_it_is_largest_and_how_large_it_is(order):
    outputs = run(order, [[1, 3, 2], [9, 0, 9]], [[-5, -4]])

    assert [item.tolist() for item in outputs["scores_index"]] == [[1, 0], [1]]
    assert [item.tolist() for item in outputs["scores_value"]] == [[3, 9], [-4]]
    assert outputs["scores_index"][0].dtype == np.int64


def test_other_outputs_stay_and_either_part_may_be_left_out(order):
    outputs = run(replace(order, outputs=(TWICE, VALUE)), [[1, 3]])

    assert [item.tolist() for item in outputs["twice"]] == [[[2, 6]]]
    assert [item.tolist() for item in outputs["scores_value"]] == [[3]]


def test_what_is_no_number_is_the_largest(order):
    outputs = run(order, [[1, np.nan, 3]])

    assert outputs["scores_index"][0].tolist() == [1]
    assert np.isnan(outputs["scores_value"][0]).all()


def test_the_output_itself_is_then_no_port(order):
    error = refusal(replace(order, outputs=(SCORES,)))

    assert isinstance(error, TensorMismatchError)
    assert "scores_index, scores_value" in error.message


def test_a_type_other_than_that_of_an_index_is_refused(order):
    error = refusal(replace(order, outputs=(replace(INDEX, data_type=DataType.INT32),)))

    assert isinstance(error, TensorMismatchError)
    assert "the graph has int64" in error.message


def test_an_output_that_the_graph_does_not_have_is_refused(order):
    error = refusal(replace(order, options={"largest": ["score"]}))

    assert isinstance(error, FieldInvalidError)
    assert "it has scores, twice" in error.message


def test_nothing_along_the_last_dimension_is_a_failure_of_its_own(order):
    with Trial(OnnxExecutor, order, {}) as trial:
        execution = LocalExecution(order)
        execution.feed_all({"x": [np.zeros((2, 0), np.float32)]})
        error = trial.start(execution).wait("nothing to compare")
    assert isinstance(error, OutputContractError)
