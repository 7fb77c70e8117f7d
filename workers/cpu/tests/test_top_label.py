"""Names of classes from their scores."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.errors import FieldInvalidError, FormatUnsupportedError, TensorMismatchError
from stagewire.ports import Dimension
from stagewire.worker.conformance import Trial
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.functions.top_label import likeliest

pytestmark = pytest.mark.unit

SCORES = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=20)


def test_the_likeliest_class_is_named(vision_order):
    with Trial(FunctionExecutor, vision_order("top_label"), {}) as trial:
        outputs = trial.complete({"logits": [np.array([[0, 0, 3]], np.float32)]}, "scores")

    assert outputs["label"] == ["tea cup"]
    assert float(outputs["probability"][0]) == pytest.approx(np.exp(3) / (np.exp(3) + 2))


@given(SCORES)
def test_the_probability_is_that_of_the_highest_score(scores):
    index, probability = likeliest(np.array(scores, np.float32))

    assert scores[index] == max(scores)
    assert 1 / len(scores) - 1e-9 <= probability <= 1


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_refused(score):
    with pytest.raises(FieldInvalidError, match="not a number"):
        likeliest(np.array([1, score], np.float32))


def test_scores_and_names_are_equally_many(vision_order):
    order = vision_order("top_label")
    wide = replace(order.inputs[0], dimensions=(Dimension("", 1), Dimension("", 4)))

    with pytest.raises(TensorMismatchError, match="there are 3 names"):
        FunctionExecutor().load(replace(order, inputs=(wide,)), lambda _: None)


def test_a_stream_of_scores_gives_a_stream_of_names(vision_order):
    order = vision_order("top_label")
    streams = replace(
        order,
        inputs=tuple(replace(it, is_stream=True) for it in order.inputs),
        outputs=tuple(replace(it, is_stream=True) for it in order.outputs[:1]),
    )
    scores = [np.eye(3, dtype=np.float32)[index : index + 1] for index in (1, 0)]
    with Trial(FunctionExecutor, streams, {}) as trial:
        assert trial.complete({"logits": scores}, "two")["label"] == ["dog", "cat"]

    with pytest.raises(TensorMismatchError, match="must be a stream"):
        FunctionExecutor().load(replace(streams, outputs=order.outputs), lambda _: None)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", "no", json.dumps({"0": "cat"})])
def test_names_are_a_list_of_texts(vision_order, tmp_path, content):
    path = tmp_path / "names.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(FormatUnsupportedError, match="not a JSON list of names"):
        FunctionExecutor().load(
            replace(vision_order("top_label"), files={"names.json": path}), lambda _: None
        )
