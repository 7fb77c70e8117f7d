"""Functions in a child of the worker: who has one, and that it computes the same."""

from dataclasses import replace

import numpy as np
import pytest

from stagewire.errors import FieldInvalidError
from stagewire.worker import child_process
from stagewire.worker.child_process import living_children
from stagewire.worker.conformance import Trial
from worker_cpu.functions.executor import FUNCTIONS, FunctionExecutor

pytestmark = pytest.mark.integration

TEXT = {"text": ["This is one. ", "This is an", "other. And a third"]}


def outputs(order, inputs, **options):
    with Trial(FunctionExecutor, replace(order, options=options), inputs) as trial:
        count = len(living_children())
        return trial.complete(inputs, "a run"), count


def test_no_function_has_a_process_of_its_own_unless_the_plan_says_so(split_order):
    assert not [name for name, function in FUNCTIONS.items() if function.in_child]
    sentences, children = outputs(split_order, TEXT)
    assert children == 0

    assert outputs(split_order, TEXT, in_child=True) == (sentences, 1)
    assert outputs(split_order, TEXT, in_child=False) == (sentences, 0)
    assert not living_children()


def test_options_of_the_function_reach_it_in_its_child(split_order):
    sentences, _ = outputs(split_order, TEXT, in_child=True, min_characters=1_00)
    assert sentences == {"sentence": ["This is one. This is another. And a third"]}
    with pytest.raises(FieldInvalidError) as caught:
        outputs(split_order, TEXT, in_child=True, min_charcters=1)
    assert "min_charcters" in caught.value.message
    assert not living_children()


def test_the_option_is_true_or_false(split_order):
    with pytest.raises(FieldInvalidError) as caught:
        outputs(split_order, TEXT, in_child="yes")
    assert "in_child" in caught.value.message


def test_a_page_is_prepared_alike_in_a_child(vision_order):
    image = np.random.default_rng(1).integers(0, 256, (480, 960, 3), np.uint8)
    made = []
    for in_child in (False, True):
        order = vision_order("page_prepare", in_child=in_child)
        with Trial(FunctionExecutor, order, {}) as trial:
            made.append(trial.complete({"image": [image]}, "a page"))
            assert ("process" in trial.stage.thread_settings) is in_child
    for port in made[0]:
        assert np.array_equal(made[0][port][0], made[1][port][0])


def test_where_processes_cannot_be_had_a_function_that_prefers_one_runs_in_the_worker(
    split_order, monkeypatch
):
    monkeypatch.setitem(
        FUNCTIONS, "split_sentences", replace(FUNCTIONS["split_sentences"], in_child=True)
    )
    assert outputs(split_order, TEXT)[1] == 1
    monkeypatch.setattr(child_process.sys, "platform", "win32")
    assert outputs(split_order, TEXT)[1] == 0
