"""The executors `function` and `onnx` before the suite of every executor, without a model."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from stagewire.errors import TensorMismatchError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import CHECKS, LocalExecution, Trial
from stagewire.worker.executor import StageOrder
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.onnx import OnnxExecutor

pytestmark = pytest.mark.integration

ROWS = (Dimension("rows", 8), Dimension("", 2))


@pytest.fixture(scope="module")
def onnx_order(tmp_path_factory) -> StageOrder:
    """A graph that adds a constant-like input to each item of a stream."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["left", "right"], ["sum"])],
        "adds",
        [
            helper.make_tensor_value_info("left", TensorProto.FLOAT, ["rows", 2]),
            helper.make_tensor_value_info("right", TensorProto.FLOAT, [2]),
        ],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["rows", 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("adds") / "adds.onnx"
    onnx.save(model, str(path))
    return StageOrder(
        "adds",
        "onnx",
        "cpu",
        artifact_format="onnx:fp32",
        files={"adds.onnx": path},
        inputs=(
            Port("left", DataType.FLOAT32, ROWS, is_stream=True),
            Port("right", DataType.FLOAT32, (Dimension("", 2),)),
        ),
        outputs=(Port("sum", DataType.FLOAT32, ROWS, is_stream=True),),
    )


@pytest.fixture(scope="module")
def vision_inputs() -> dict[str, dict[str, list]]:
    image = np.random.default_rng(1).integers(0, 256, (48, 96, 3), np.uint8)
    probabilities = np.zeros((1, 1, 64, 96), np.float32)
    probabilities[..., 8:20, 8:88] = probabilities[..., 36:48, 8:60] = 1
    return {
        "page_prepare": {"image": [image]},
        "page_boxes": {
            "image": [image],
            "map": [probabilities],
            "area": [np.array([0, 8, 96, 48], np.int32)],
        },
        "page_text": {
            "class": [np.array([[1, 2, 0]]), np.array([[3]])],
            "probability": [np.ones((1, 3), np.float32), np.ones((1, 1), np.float32)],
        },
        "photo_prepare": {"image": [image]},
        "top_label": {"logits": [np.array([[1, 3, 2]], np.float32)]},
        "compose_prompt": {"line": ["one", "two"], "label": ["cup"]},
    }


FUNCTIONS = [
    *("resample", "split_sentences", "page_prepare", "page_boxes", "page_text"),
    *("photo_prepare", "top_label", "compose_prompt"),
]


@pytest.fixture(
    scope="module",
    params=[
        ("onnx", {}),
        *((name, {"in_child": it}) for name in FUNCTIONS for it in (False, True)),
    ],
    ids=lambda param: f"{param[0]} in a child" if param[1].get("in_child") else param[0],
)
def trial(request, resample_order, split_order, onnx_order, vision_order, vision_inputs):
    name, options = request.param
    if name in vision_inputs:
        inputs = vision_inputs[name]
        with Trial(FunctionExecutor, vision_order(name, **options), inputs) as opened:
            yield opened
        return
    make, order, inputs = {
        "resample": (
            FunctionExecutor,
            resample_order,
            {
                "audio": [np.ones(4_000, np.float32), np.zeros(4_000, np.float32)],
                "rate": [np.array(44_100, np.int32)],
            },
        ),
        "split_sentences": (
            FunctionExecutor,
            split_order,
            {"text": ["This is one. ", "This is an", "other. And a third"]},
        ),
        "onnx": (
            OnnxExecutor,
            onnx_order,
            {
                "left": [np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)],
                "right": [np.array([1.0, 2.0], np.float32)],
            },
        ),
    }[name]
    with Trial(make, replace(order, options=options), inputs) as opened:
        yield opened


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_executor_conforms(trial, check):
    check(trial)


def test_a_graph_runs_once_for_each_set_of_items(onnx_order):
    with Trial(OnnxExecutor, onnx_order, {}) as trial:
        outputs = trial.complete(
            {
                "left": [np.full((2, 2), 1, np.float32), np.full((1, 2), 5, np.float32)],
                "right": [np.array([1.0, 2.0], np.float32)],
            },
            "two sets",
        )
    assert [item.tolist() for item in outputs["sum"]] == [[[2, 3], [2, 3]], [[6, 7]]]


def test_a_graph_without_streams_runs_once(onnx_order):
    order = replace(
        onnx_order,
        inputs=tuple(replace(port, is_stream=False) for port in onnx_order.inputs),
        outputs=tuple(replace(port, is_stream=False) for port in onnx_order.outputs),
    )
    with Trial(OnnxExecutor, order, {}) as trial:
        outputs = trial.complete(
            {"left": [np.ones((1, 2), np.float32)], "right": [np.ones(2, np.float32)]}, "one set"
        )
    assert [item.tolist() for item in outputs["sum"]] == [[[2, 2]]]


def test_streams_of_different_lengths_are_refused(onnx_order):
    order = replace(
        onnx_order, inputs=tuple(replace(port, is_stream=True) for port in onnx_order.inputs)
    )
    with Trial(OnnxExecutor, order, {}) as trial:
        execution = LocalExecution(order)
        execution.feed_all(
            {
                "left": [np.ones((1, 2), np.float32)] * 2,
                "right": [np.ones(2, np.float32)],
            }
        )
        error = trial.start(execution).wait("one stream is shorter")
    assert isinstance(error, TensorMismatchError)
    assert "'right' ended before 'left'" in error.message


def test_threads_are_what_the_order_says(onnx_order):
    with Trial(OnnxExecutor, replace(onnx_order, thread_count=2), {}) as trial:
        settings = trial.stage.thread_settings
    assert settings["onnxruntime.intra_op_num_threads"] == "2"
    assert settings["onnxruntime.intra_op.allow_spinning"] == "0"
