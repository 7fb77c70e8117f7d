"""Texts of lines from what a recogniser says of them."""

import string
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.errors import FieldInvalidError, FormatUnsupportedError, TensorMismatchError
from stagewire.worker.conformance import LocalExecution, Trial
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.vision.characters import decode_line, read_characters

pytestmark = pytest.mark.unit

CHARACTERS = ("", *string.ascii_lowercase, " ")
CONFTEST = "abcdefghijklmnopqrstuvwxyz.,!"


def classes_of(text: str) -> list[int]:
    return [CONFTEST.index(sign) + 1 if sign != " " else len(CONFTEST) + 1 for sign in text]


@given(st.lists(st.tuples(st.sampled_from(CHARACTERS[1:]), st.integers(1, 4), st.integers(0, 3))))
def test_a_text_comes_back_however_often_its_signs_are_repeated(signs):
    steps: list[int] = []
    for sign, times, blanks in signs:
        index = CHARACTERS.index(sign)
        # Two equal signs in a row are two only when a blank parts them.
        steps += [0] * (blanks or (bool(steps) and steps[-1] == index)) + [index] * times
    classes = np.array(steps, np.int64)

    text, confidence = decode_line(classes, np.full(len(steps), 0.5, np.float32), CHARACTERS)

    assert text == "".join(sign for sign, _, _ in signs)
    assert confidence == (0.5 if signs else 0.0)


def test_the_confidence_is_that_of_the_first_step_of_each_sign():
    classes = np.array([0, 1, 1, 0, 2], np.int64)
    probabilities = np.array([1, 0.5, 1, 1, 0.25], np.float32)

    assert decode_line(classes, probabilities, CHARACTERS) == ("ab", 0.375)


@pytest.mark.parametrize(
    ("classes", "probabilities", "words"),
    [
        ([28], [1.0], "the class 28"),
        ([-1], [1.0], "class"),
        ([1], [np.nan], "not a number"),
        ([1, 2], [1.0], "2 classes and 1 probabilities"),
    ],
)
def test_what_no_recogniser_says_is_refused(classes, probabilities, words):
    with pytest.raises(FieldInvalidError, match=words):
        decode_line(np.array(classes), np.array(probabilities, np.float32), CHARACTERS)


def test_characters_lie_between_nothing_and_a_space():
    assert read_characters({"character": "a\nb\nc"}) == ("", "a", "b", "c", " ")


def test_a_model_without_characters_is_refused():
    with pytest.raises(FormatUnsupportedError, match="metadata"):
        read_characters({"other": "x"})


def test_blank_and_unsure_lines_are_left_out(vision_order):
    lines = [("hello, you", 0.9), (" ", 0.9), ("maybe", 0.6), ("", 0.9)]
    inputs = {
        "class": [np.array([classes_of(text)], np.int64) for text, _ in lines],
        "probability": [np.full((1, len(text)), sure, np.float32) for text, sure in lines],
    }
    with Trial(FunctionExecutor, vision_order("page_text", min_confidence=0.7), {}) as trial:
        outputs = trial.complete(inputs, "four lines")

    # The doubled letter is one: no blank parts it.
    assert outputs["line"] == ["helo, you"]
    assert [float(item) for item in outputs["confidence"]] == [pytest.approx(0.9)]


def test_confidence_may_be_left_out(vision_order):
    order = vision_order("page_text")
    order = replace(order, outputs=order.outputs[:1])
    inputs = {"class": [np.array([[1]])], "probability": [np.ones((1, 1), np.float32)]}
    with Trial(FunctionExecutor, order, {}) as trial:
        assert trial.complete(inputs, "one line") == {"line": ["a"]}


@pytest.mark.parametrize(("classes", "probabilities"), [(1, 2), (2, 1)])
def test_streams_of_different_lengths_are_refused(vision_order, classes, probabilities):
    order = vision_order("page_text")
    with Trial(FunctionExecutor, order, {}) as trial:
        execution = LocalExecution(order)
        execution.feed_all(
            {
                "class": [np.array([[1]])] * classes,
                "probability": [np.ones((1, 1), np.float32)] * probabilities,
            }
        )
        error = trial.start(execution).wait("one stream is shorter")
    assert isinstance(error, TensorMismatchError)
    assert "same recogniser" in error.message
