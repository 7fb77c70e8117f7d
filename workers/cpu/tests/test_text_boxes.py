"""Boxes around the marked regions of a map, and the lines that are cut out by them."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker_cpu.vision.line_images import line_image
from worker_cpu.vision.text_box import TextBox
from worker_cpu.vision.text_boxes import BoxSettings, find_boxes

pytestmark = pytest.mark.unit

RULES = BoxSettings(threshold=0.3, box_threshold=0.5, growth=1.6, most_lines=100)


def marked(*rectangles, shape=(400, 600), value=0.9) -> np.ndarray:
    """A map with turned rectangles: ((x, y), (width, height), degrees)."""
    result = np.zeros(shape, np.float32)
    for rectangle in rectangles:
        cv2.fillPoly(result, [cv2.boxPoints(rectangle).round().astype(np.int32)], value)
    return result


@settings(deadline=None)
@given(st.floats(-40, 40), st.floats(100, 200), st.floats(14, 30))
def test_a_box_lies_as_its_region_and_grows_by_its_part(turn, width, height):
    (box,) = find_boxes(marked(((300, 200), (width, height), turn)), RULES)

    # Regions are whole pixels, widened by one on each side, and grow by more than they are wide.
    grown = RULES.growth * width * height / (width + height)
    assert box.centre == pytest.approx((300, 200), abs=1.5)
    assert math.degrees(math.atan2(box.along[1], box.along[0])) == pytest.approx(turn, abs=2)
    assert box.width == pytest.approx(width + grown, abs=10)
    assert box.height == pytest.approx(height + grown, abs=10)
    assert box.along @ box.down == pytest.approx(0, abs=1e-6)


def test_text_that_stands_upright_on_the_page_is_read_downwards():
    (box,) = find_boxes(marked(((300, 200), (20, 200), 0)), RULES)

    assert box.along[1] > 150
    assert abs(box.along[0]) < 5
    assert box.down[0] < 0


def test_one_high_character_is_not_turned():
    (box,) = find_boxes(marked(((300, 200), (30, 36), 0)), RULES)

    assert box.along[0] > 30
    assert box.down[1] > 30


@pytest.mark.parametrize(
    "probabilities",
    [
        np.zeros((64, 64), np.float32),
        np.full((64, 64), 0.29, np.float32),
        marked(((30, 30), (100, 20), 0), value=0.4),
        marked(((30, 30), (1, 1), 0)),
    ],
    ids=["nothing", "below the threshold", "unsure", "a speck"],
)
def test_what_is_no_line_gives_no_box(probabilities):
    assert find_boxes(probabilities, RULES) == []


def test_a_map_that_is_all_text_gives_one_box():
    (box,) = find_boxes(np.ones((64, 96), np.float32), RULES)

    assert box.width > 96
    assert box.height > 64


def test_of_too_many_regions_the_largest_are_taken():
    small = [((40 + 50 * index, 50), (30, 10), 0) for index in range(8)]
    probabilities = marked(*small, ((300, 200), (200, 20), 0))

    boxes = find_boxes(probabilities, BoxSettings(0.3, 0.5, 1.6, 1))

    assert len(boxes) == 1
    assert boxes[0].width > 200


def test_a_moved_box_keeps_its_form():
    box = TextBox(np.array([10.0, 20.0]), np.array([40.0, 0.0]), np.array([0.0, 8.0]))

    moved = box.moved(np.array([-10, -20]), np.array([0.5, 2.0]))

    assert moved.corner.tolist() == [0, 0]
    assert moved.along.tolist() == [20, 0]
    assert moved.down.tolist() == [0, 16]


def test_a_line_is_cut_out_as_it_is():
    noise = np.random.default_rng(1).integers(0, 256, (48, 200, 3), np.uint8)
    page = np.zeros((100, 300, 3), np.uint8)
    page[30:78, 50:250] = noise
    box = TextBox(np.array([50.0, 30.0]), np.array([200.0, 0.0]), np.array([0.0, 48.0]))

    assert np.array_equal(line_image(page, box, 48, 2400), noise)


@pytest.mark.parametrize("turn", [-30, -7, 12, 90])
def test_a_line_that_leans_is_cut_out_upright(turn):
    """Dark above, light below, whatever the direction of the line."""
    line = np.zeros((40, 200, 3), np.uint8)
    line[20:] = 255
    matrix = cv2.getRotationMatrix2D((100, 20), -turn, 1)
    matrix[:, 2] += (100, 180)
    page = cv2.warpAffine(line, matrix, (400, 400), borderValue=(128, 128, 128))
    corner, right, below = (matrix @ (x, y, 1) for x, y in ((0, 0), (200, 0), (0, 40)))

    found = line_image(page, TextBox(corner, right - corner, below - corner), 48, 2400)

    assert found.shape == (48, 240, 3)
    assert found[8:20, 10:-10].mean() < 10
    assert found[28:40, 10:-10].mean() > 245


def test_a_line_that_is_too_long_is_squeezed_and_a_high_one_averaged():
    page = np.random.default_rng(1).integers(0, 2, (480, 3000, 3), np.uint8) * 255
    whole = TextBox(np.zeros(2), np.array([3000.0, 0.0]), np.array([0.0, 480.0]))
    flat = TextBox(np.zeros(2), np.array([3000.0, 0.0]), np.array([0.0, 20.0]))

    assert line_image(page, whole, 48, 2400).shape == (48, 300, 3)
    assert line_image(page, whole, 48, 2400)[5:-5, 5:-5].std() < 30
    assert line_image(page, flat, 48, 2400).shape == (48, 2400, 3)


def test_a_box_of_no_extent_gives_one_column():
    nothing = TextBox(np.zeros(2), np.zeros(2), np.zeros(2))

    assert line_image(np.zeros((10, 10, 3), np.uint8), nothing, 48, 2400).shape == (48, 1, 3)
