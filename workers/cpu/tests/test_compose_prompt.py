"""Prompts from lines and a label."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.worker.conformance import Trial
from worker_cpu.functions.compose_prompt import PromptSettings, compose
from worker_cpu.functions.executor import FunctionExecutor

pytestmark = pytest.mark.unit


def prompts(order, **inputs) -> list[str]:
    with Trial(FunctionExecutor, order, {}) as trial:
        return trial.complete(inputs, "a prompt")["prompt"]


def only(order, port: str, *, streams: bool):
    """The order with one input, and with an output that is a stream or not."""
    return replace(
        order,
        inputs=tuple(it for it in order.inputs if it.name == port),
        outputs=tuple(replace(it, is_stream=streams) for it in order.outputs),
    )


def test_lines_and_a_label_fill_their_places(vision_order):
    order = vision_order("compose_prompt", template="It shows {label}:\n{lines}\nSo?")

    assert prompts(order, line=["one", " two "], label=["a cup"]) == [
        "It shows a cup:\none\ntwo\nSo?"
    ]


def test_without_a_template_the_texts_follow_each_other(vision_order):
    assert prompts(vision_order("compose_prompt"), line=["one"], label=["cup"]) == ["one\ncup"]


def test_without_a_line_the_plan_says_what_stands_there(vision_order):
    order = vision_order("compose_prompt", template="{label}: {lines}", without_lines="nothing")

    assert prompts(order, line=[], label=["cup"]) == ["cup: nothing"]


def test_without_any_text_there_is_no_prompt(vision_order):
    order = vision_order("compose_prompt", template="About: {lines}")

    assert prompts(only(order, "line", streams=True), line=["", " "]) == []
    assert prompts(only(order, "line", streams=False), line=[]) == [""]


def test_lines_are_cut_at_the_limit(vision_order):
    order = vision_order("compose_prompt", template="{lines}", max_characters=8)

    assert prompts(only(order, "line", streams=True), line=["12345", "678", "9"]) == ["12345\n67"]


@given(st.lists(st.text()), st.text())
def test_what_is_filled_in_is_not_looked_at_again(lines, label):
    settings = PromptSettings("{label}|{lines}", 10_000, "-")
    text = "\n".join(lines)

    assert compose(settings, {"line": text, "label": label}) == f"{label}|{text or '-'}"


def test_places_in_a_text_are_no_places():
    settings = PromptSettings("{label}|{lines}", 100, "-")

    assert compose(settings, {"line": "{label}", "label": "{lines}"}) == "{lines}|{label}"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{lines}", "places for lines; its inputs fill label, lines"),
        ("nothing", "places for nothing"),
        ("{lines} {label} {other}", "other"),
    ],
)
def test_a_template_has_a_place_for_each_input(vision_order, template, words):
    with pytest.raises(FieldInvalidError, match=words):
        FunctionExecutor().load(vision_order("compose_prompt", template=template), lambda _: None)


def test_a_stage_without_inputs_is_refused(vision_order):
    with pytest.raises(TensorMismatchError, match="'line' or 'label'"):
        FunctionExecutor().load(replace(vision_order("compose_prompt"), inputs=()), lambda _: None)
