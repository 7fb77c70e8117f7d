"""What came out of an example, held against what is expected of it."""

import numpy as np
import pytest

from coordinator.app.judging import judge
from coordinator.plan.schema import ExampleSpec, ExpectationSpec

pytestmark = pytest.mark.unit

WORDS = ["How does ", "bread rise?"]
TENSORS = [np.array([1, 2, 3], np.int16), np.array([4, 5], np.int16)]


def misses(items, **rules):
    example = ExampleSpec(expect={"y": ExpectationSpec(**rules)})
    return [str(item) for item in judge(example, {"y": items} if items else {}) if not item.is_met]


@pytest.mark.parametrize(
    ("items", "rules"),
    [
        (WORDS, {"min_items": 2, "max_items": 2}),
        ([], {"max_items": 0}),
        ([], {"min_items": 0}),
        (WORDS, {"contains": ("BREAD", "does bread")}),
        (WORDS, {"equals": " How does bread rise?\n"}),
        ([], {"equals": ""}),
        (TENSORS, {"min_elements": 5}),
        (TENSORS, {"min": 1, "max": 5}),
        ([np.float32(0.5)], {"min": 0.5, "max": 0.5}),
        ([np.array(True)], {"min": 1}),
    ],
)
def test_what_holds_is_no_miss(items, rules):
    assert misses(items, **rules) == []


@pytest.mark.parametrize(
    ("items", "rules", "miss"),
    [
        (WORDS, {"min_items": 3}, "y: min_items 3, found 2"),
        (WORDS, {"max_items": 1}, "y: max_items 1, found 2"),
        ([], {"min_items": 1}, "y: min_items 1, found 0"),
        (WORDS, {"contains": ("cake",)}, "y: contains cake, found How does bread rise?"),
        (WORDS, {"equals": "How"}, "y: equals How, found How does bread rise?"),
        (WORDS, {"equals": "how does bread rise?"}, "y: equals how"),
        (TENSORS, {"contains": ("1",)}, "y: contains 1, found no text"),
        (WORDS, {"min_elements": 1}, "y: min_elements 1, found 0"),
        (TENSORS, {"min_elements": 6}, "y: min_elements 6, found 5"),
        (TENSORS, {"min": 2}, "y: min 2.0, found 1.0"),
        (TENSORS, {"max": 4}, "y: max 4.0, found 5.0"),
        ([np.array([1, np.nan])], {"min": 0}, "y: min 0.0, found nan"),
        ([np.array([1, np.nan])], {"max": 9}, "y: max 9.0, found nan"),
        ([np.array([np.inf])], {"max": 9}, "y: max 9.0, found inf"),
        ([], {"min": 0}, "y: min 0.0, found no numbers"),
        ([np.empty(0)], {"max": 0}, "y: max 0.0, found no numbers"),
        (WORDS, {"max": 0}, "y: max 0.0, found no numbers"),
        ([np.float32(1), "one"], {"min": 0}, "y: min 0.0, found no numbers"),
    ],
)
def test_what_does_not_hold_says_what_was_found(items, rules, miss):
    [found] = misses(items, **rules)

    assert found.startswith(miss)


def test_every_rule_is_found_whether_it_holds_or_not():
    example = ExampleSpec(
        expect={
            "y": ExpectationSpec(min_items=1, contains=("bread", "cake")),
            "z": ExpectationSpec(max_items=0),
        }
    )

    found = judge(example, {"y": WORDS})

    assert [(item.output, item.rule, item.is_met) for item in found] == [
        ("y", "min_items", True),
        ("y", "contains", True),
        ("y", "contains", False),
        ("z", "max_items", True),
    ]


def test_a_long_text_is_cut_in_what_was_found():
    [found] = misses(["a" * 10_000], contains=("b",))

    assert len(found) < 2100
