"""Sessions over tiny graphs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortkit import SessionSettings, check_order, open_session
from stagewire.errors import (
    FormatUnsupportedError,
    LoadFailedError,
    PathForbiddenError,
    StageError,
    TensorMismatchError,
)
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder

pytestmark = pytest.mark.integration


def save(path: Path, nodes, inputs, outputs, weights=(), **how) -> Path:
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializer=list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path), **how)
    return path


def tensor(name: str, kind: int, shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


@pytest.fixture
def adds(tmp_path) -> Path:
    return save(
        tmp_path / "adds.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [tensor("x", TensorProto.FLOAT, ["rows", 4])],
        [tensor("y", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")],
    )


@pytest.fixture
def split(tmp_path) -> Path:
    """The same graph with its weights in a file beside it."""
    return save(
        tmp_path / "split.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [tensor("x", TensorProto.FLOAT, ["rows", 4])],
        [tensor("y", TensorProto.FLOAT, ["rows", 4])],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")],
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )


def test_a_graph_runs_with_the_threads_it_was_given(adds):
    session = open_session(adds, {"adds.onnx": adds})
    (result,) = session.run(["y"], {"x": np.ones((2, 4), np.float32)})
    assert result.tolist() == [[1, 2, 3, 4]] * 2
    assert session.thread_settings == {
        "onnxruntime.intra_op_num_threads": "1",
        "onnxruntime.inter_op_num_threads": "1",
        "onnxruntime.intra_op.allow_spinning": "0",
        "onnxruntime.inter_op.allow_spinning": "0",
        "onnxruntime.providers": "CPUExecutionProvider",
    }


def test_other_settings_are_read_back_too(adds):
    settings = SessionSettings(intra_op_threads=2, allow_spinning=True)
    in_force = open_session(adds, {"adds.onnx": adds}, settings).thread_settings
    assert in_force["onnxruntime.intra_op_num_threads"] == "2"
    assert in_force["onnxruntime.intra_op.allow_spinning"] == "1"


def test_an_input_that_does_not_fit_the_graph_is_refused_with_both_shapes(adds):
    session = open_session(adds, {"adds.onnx": adds})
    with pytest.raises(TensorMismatchError) as refusal:
        session.run(["y"], {"x": np.ones((2, 3), np.float32)})
    assert refusal.value.message == (
        "input 'x' of the graph has the shape [rows, 4]; the item has [2, 3]"
    )
    with pytest.raises(TensorMismatchError, match="is float32; the item is int64"):
        session.run(["y"], {"x": np.ones((2, 4), np.int64)})


def test_the_text_of_a_run_that_fails_is_not_made_a_message_for_clients(tmp_path):
    path = save(
        tmp_path / "sums.onnx",
        [helper.make_node("Add", ["x", "z"], ["y"])],
        [tensor(name, TensorProto.FLOAT, [name]) for name in ("x", "z")],
        [tensor("y", TensorProto.FLOAT, ["n"])],
    )
    session = open_session(path, {"sums.onnx": path})
    with pytest.raises(Exception) as failure:  # noqa: PT011 - its class is what is tested
        session.run(["y"], {"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)})
    # The host keeps the text of what is no class of the table from clients.
    assert not isinstance(failure.value, StageError)


def test_texts_pass_through_a_graph(tmp_path):
    path = save(
        tmp_path / "same.onnx",
        [helper.make_node("Identity", ["x"], ["y"])],
        [tensor("x", TensorProto.STRING, [])],
        [tensor("y", TensorProto.STRING, [])],
    )
    assert open_session(path, {"same.onnx": path}).run(["y"], {"x": "grün"}) == ["grün"]


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\xff" * 40])
def test_a_file_that_is_not_a_model_is_refused_without_its_path(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(FormatUnsupportedError) as refusal:
        open_session(path, {"model.onnx": path})
    assert str(tmp_path) not in refusal.value.message


def test_a_graph_that_makes_no_sense_is_refused(tmp_path):
    path = save(
        tmp_path / "odd.onnx",
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [tensor("x", TensorProto.FLOAT, [1])],
        [tensor("y", TensorProto.FLOAT, [1])],
    )
    with pytest.raises(LoadFailedError, match="NoSuchOperator") as refusal:
        open_session(path, {"odd.onnx": path})
    assert str(tmp_path) not in refusal.value.message


def test_a_provider_that_is_not_there_is_refused_with_those_that_are(adds):
    settings = SessionSettings(providers=("CUDAExecutionProvider",))
    with pytest.raises(LoadFailedError, match="CPUExecutionProvider"):
        open_session(adds, {"adds.onnx": adds}, settings)


def test_weights_beside_the_model_need_to_be_files_of_the_artifact(split):
    weights = split.with_name("weights.bin")
    with pytest.raises(PathForbiddenError, match=r"weights\.bin"):
        open_session(split, {"split.onnx": split})
    session = open_session(split, {"split.onnx": split, "weights.bin": weights})
    (result,) = session.run(["y"], {"x": np.zeros((1, 4), np.float32)})
    assert result.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname"])
@pytest.mark.parametrize("place", ["initializer", "attribute", "branch"])
def test_weights_outside_the_artifact_are_refused_wherever_they_hide(tmp_path, location, place):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    nodes, weights = [helper.make_node("Add", ["x", "w"], ["y"])], [weight]
    if place != "initializer":
        constant = helper.make_node("Constant", [], ["w"])
        constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(weight)
        nodes, weights = [constant, *nodes], []
    if place == "branch":
        branch = helper.make_graph(nodes, "b", [], [tensor("y", TensorProto.FLOAT, [4])])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    graph = helper.make_graph(
        nodes,
        "hides",
        [tensor("x", TensorProto.FLOAT, [4]), tensor("c", TensorProto.BOOL, [])],
        [tensor("y", TensorProto.FLOAT, [4])],
        initializer=weights,
    )
    path = tmp_path / "hides.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(PathForbiddenError, match="not a file of its artifact"):
        open_session(path, {"hides.onnx": path})


def port(name: str, *extents: int | str, kind: DataType = DataType.FLOAT32) -> Port:
    return Port(
        name,
        kind,
        tuple(
            Dimension("", extent) if isinstance(extent, int) else Dimension(extent, 100)
            for extent in extents
        ),
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "named"),
    [
        ([port("z", "n", 4)], [port("y", "n", 4)], "no input 'z'"),
        ([], [port("y", "n", 4)], "needs the input 'x'"),
        ([port("x", "n", 4)], [port("z", "n", 4)], "no output 'z'"),
        ([port("x", "n", 4)], [], "no output"),
        ([port("x", "n", 4, kind=DataType.INT32)], [port("y", "n", 4)], "float32"),
        ([port("x", 4)], [port("y", "n", 4)], "dimensions"),
        ([port("x", "n", 5)], [port("y", "n", 4)], "extent 4"),
        ([port("x", "n", "m")], [port("y", "n", 4)], "extent 4"),
        ([port("x", "n", 4)], [port("y", "n", 5)], "extent 4"),
    ],
)
def test_ports_that_do_not_fit_the_graph_are_refused(adds, inputs, outputs, named):
    session = open_session(adds, {"adds.onnx": adds})
    order = StageOrder("adds", "onnx", "cpu", inputs=tuple(inputs), outputs=tuple(outputs))
    with pytest.raises(TensorMismatchError, match=named):
        check_order(order, session.inputs, session.outputs)


def test_ports_that_fit_are_accepted(adds):
    session = open_session(adds, {"adds.onnx": adds})
    for inputs, outputs in (
        ([port("x", "n", 4)], [port("y", "n", 4)]),
        ([port("x", 2, 4)], [port("y", 2, "n")]),
    ):
        order = StageOrder("adds", "onnx", "cpu", inputs=tuple(inputs), outputs=tuple(outputs))
        check_order(order, session.inputs, session.outputs)


def test_importing_the_package_loads_no_runtime():
    program = "import sys, ortkit; print('onnxruntime' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
