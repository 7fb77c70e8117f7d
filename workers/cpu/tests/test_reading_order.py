"""In which order lines of a page are read."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_cpu.vision.reading_order import reading_order
from worker_cpu.vision.text_box import TextBox

pytestmark = pytest.mark.unit

HEIGHT = 20.0


def box(x: float, y: float, width: float = 300.0, turn: float = 0.0) -> TextBox:
    """A line whose upper left corner is at x and y of a page that is then turned, in degrees."""
    across = np.array([math.cos(math.radians(turn)), math.sin(math.radians(turn))])
    downward = np.array([-across[1], across[0]])
    return TextBox(x * across + y * downward, width * across, HEIGHT * downward)


def column(x: float, count: int, *, y: float = 100.0, gap: float = 30.0, turn: float = 0.0):
    return [box(x, y + index * gap, turn=turn) for index in range(count)]


def order(boxes: list[TextBox], seed: int = 0) -> list[int]:
    """The order that is found when the boxes come in another one."""
    shuffled = list(range(len(boxes)))
    random.Random(seed).shuffle(shuffled)
    return [shuffled[index] for index in reading_order([boxes[index] for index in shuffled])]


@given(st.integers(0, 30), st.integers(), st.floats(-40, 40))
def test_one_column_is_read_downwards(count, seed, turn):
    boxes = column(50, count, turn=turn)
    assert order(boxes, seed) == list(range(count))


@given(st.integers(2, 12), st.integers(2, 12), st.integers(), st.floats(-20, 20))
def test_columns_are_read_one_after_the_other(left, right, seed, turn):
    boxes = column(50, left, turn=turn) + column(400, right, turn=turn)
    assert order(boxes, seed) == list(range(left + right))


@given(st.integers(), st.floats(-15, 15))
def test_a_title_above_columns_and_a_line_below_stay_there(seed, turn):
    boxes = [
        box(50, 40, 650, turn),
        *column(50, 5, turn=turn),
        *column(400, 6, turn=turn),
        box(50, 320, 650, turn),
    ]
    assert order(boxes, seed) == list(range(len(boxes)))


def test_three_columns_are_read_one_after_the_other():
    boxes = column(0, 4) + column(350, 5) + column(700, 3)
    assert order(boxes) == list(range(12))


def test_rows_of_a_table_are_read_across():
    rows = [[box(50 + 120 * cell, 100 + 30 * row, 60) for cell in range(4)] for row in range(5)]
    boxes = [cell for row in rows for cell in row]
    assert order(boxes) == list(range(20))


def test_a_table_of_contents_is_read_across():
    boxes = [cell for row in range(6) for cell in (box(50, 30 * row, 400), box(600, 30 * row, 30))]
    assert order(boxes) == list(range(12))


def test_pieces_of_one_line_are_read_from_left_to_right():
    boxes = [box(50, 100, 100), box(160, 104, 100), box(270, 97, 100), box(50, 130, 320)]
    assert order(boxes) == [0, 1, 2, 3]


def test_lines_of_a_bent_page_whose_boxes_touch_stay_apart():
    boxes = [box(50, 100 + 15 * row, 300) for row in range(8)]
    assert order(boxes) == list(range(8))


def test_no_line_and_one_line():
    assert reading_order([]) == []
    assert reading_order([box(0, 0)]) == [0]


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0, 900), st.floats(5, 500)), max_size=25))
def test_every_line_is_read_once_wherever_lines_lie(places):
    boxes = [box(x, y, width) for x, y, width in places]
    assert sorted(reading_order(boxes)) == list(range(len(boxes)))


def test_lines_that_run_downwards_are_read_from_right_to_left():
    """A page that was turned by a right angle: its first line is at the right."""
    boxes = column(50, 5, turn=90)
    assert order(boxes) == list(range(5))
