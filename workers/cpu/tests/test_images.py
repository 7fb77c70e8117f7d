"""Images as detectors and classifiers take them, and images that nobody should send."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.errors import (
    EnvironmentBrokenError,
    FieldInvalidError,
    StageError,
    TensorMismatchError,
)
from stagewire.ports import Dimension
from stagewire.worker.conformance import LocalExecution, Trial
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.functions.page_prepare import STEP, CanvasSettings, lay_out

pytestmark = pytest.mark.unit

LIMITS = CanvasSettings(736, 1_843_200, Dimension("height", 1600), Dimension("width", 1600))
SIDE = st.integers(1, 20_000)


def run(order, **inputs) -> dict[str, list]:
    with Trial(FunctionExecutor, order, {}) as trial:
        return trial.complete(inputs, "one run")


def refusal(order, **inputs) -> StageError:
    """What a run is refused with."""
    with Trial(FunctionExecutor, order, {}) as trial:
        execution = LocalExecution(order)
        execution.feed_all(inputs)
        error = trial.start(execution).wait("a refusal")
    assert isinstance(error, StageError)
    return error


def refused_load(order) -> TensorMismatchError:
    with pytest.raises(TensorMismatchError) as caught:
        FunctionExecutor().load(order, lambda _: None)
    return caught.value


def with_shape(order, port: str, *dimensions: Dimension):
    """The order with another shape of one port."""

    def changed(ports):
        return tuple(replace(it, dimensions=dimensions) if it.name == port else it for it in ports)

    return replace(order, inputs=changed(order.inputs), outputs=changed(order.outputs))


@given(SIDE, SIDE)
def test_a_canvas_holds_its_image_and_keeps_the_limits(width, height):
    canvas = lay_out(width, height, LIMITS)

    assert canvas.width % STEP == canvas.height % STEP == 0
    assert max(canvas.width, canvas.height) <= 1600
    assert canvas.image_width * canvas.image_height <= LIMITS.most_pixels * 1.01 + 2000
    assert 0 <= canvas.left <= canvas.width - canvas.image_width < STEP
    assert 0 <= canvas.top <= canvas.height - canvas.image_height < STEP
    # The longer side gives the scale; the shorter one follows it up to a pixel.
    scale = max(canvas.image_width, canvas.image_height) / max(width, height)
    shorter = min(canvas.image_width, canvas.image_height)
    assert shorter == 1 or shorter == pytest.approx(scale * min(width, height), abs=1)


def test_a_page_of_the_usual_size_is_not_scaled():
    canvas = lay_out(1132, 1600, LIMITS)

    assert (canvas.image_width, canvas.image_height) == (1132, 1600)


def test_a_canvas_of_a_fixed_size_always_has_it():
    fixed = replace(LIMITS, height=Dimension("", 640), width=Dimension("", 960))

    for width, height in ((10, 10), (3000, 100), (100, 3000)):
        canvas = lay_out(width, height, fixed)
        assert (canvas.width, canvas.height) == (960, 640)
        assert canvas.left >= 0
        assert canvas.top >= 0


def test_the_image_lies_on_the_canvas_where_the_area_says(vision_order, picture):
    page = picture("page.png")
    outputs = run(vision_order("page_prepare"), image=[page])

    (canvas,), (area,), (image,) = outputs["canvas"], outputs["area"], outputs["image"]
    left, top, width, height = area.tolist()
    assert np.array_equal(image, page)
    assert canvas.shape[2:] == (736, 1504)
    assert (width, height) == (1480, 736)
    # Means of coarse tiles agree: the same picture, in another size.
    inner = (canvas[0, 0, top : top + height, left : left + width] + 1) * 127.5
    tiles = inner[:, :1472].reshape(8, 92, 8, 184).mean(axis=(1, 3))
    wanted = page[:184, :382, 0][:, :376].reshape(8, 23, 8, 47).mean(axis=(1, 3))
    assert np.abs(tiles - wanted).max() < 12


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 15_000, 3), (15_000, 1, 3), (3, 2, 3)])
def test_images_of_odd_sizes_are_prepared(vision_order, shape):
    image = np.zeros(shape, np.uint8)

    canvas = run(vision_order("page_prepare"), image=[image])["canvas"][0]
    pixels = run(vision_order("photo_prepare"), image=[image])["pixels"][0]

    assert canvas.min() == canvas.max() == -1
    assert pixels.shape == (1, 3, 224, 224)
    assert pixels == pytest.approx(np.full(pixels.shape, -127 / 128))


@pytest.mark.parametrize("function", ["page_prepare", "photo_prepare"])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((0, 4, 3), "has 4 by 0 pixels"),
        ((4, 0, 3), "has 0 by 4 pixels"),
        ((1, 20_000, 3), "may have 16384"),
    ],
)
def test_images_that_are_none_are_refused(vision_order, function, shape, words):
    error = refusal(vision_order(function), image=[np.zeros(shape, np.uint8)])

    assert isinstance(error, TensorMismatchError)
    assert words in error.message


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((8, 8), np.uint8),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((8, 8, 1), np.uint8),
        np.zeros((8, 8, 3), np.float32),
    ],
    ids=["grey", "transparent", "one channel", "floats"],
)
@pytest.mark.parametrize("function", ["page_prepare", "photo_prepare", "page_boxes"])
def test_no_other_array_passes_the_port_of_an_image(vision_order, function, image):
    with pytest.raises(TensorMismatchError, match="port 'image' takes"):
        LocalExecution(vision_order(function)).feed("image", image)


def test_a_photo_is_cut_to_the_square_in_its_middle(vision_order):
    image = np.zeros((100, 300, 3), np.uint8)
    image[:, 100:200] = 255
    (pixels,) = run(vision_order("photo_prepare"), image=[image])["pixels"]

    assert pixels.min() == pixels.max() == 1


def test_colours_keep_their_order(vision_order):
    image = np.full((20, 20, 3), (10, 20, 30), np.uint8)
    (pixels,) = run(vision_order("photo_prepare", offset=0, divisor=1), image=[image])["pixels"]

    assert pixels[0, :, 0, 0].tolist() == [10, 20, 30]


def page_inputs(probabilities, shape=(32, 64, 3)) -> dict[str, list]:
    return {
        "image": [np.full(shape, 200, np.uint8)],
        "map": [np.asarray(probabilities, np.float32)],
        "area": [np.array([0, 0, 64, 32], np.int32)],
    }


def test_a_page_without_text_gives_no_line(vision_order):
    assert run(vision_order("page_boxes"), **page_inputs(np.zeros((1, 1, 32, 64)))) == {"crop": []}


def test_lines_of_a_port_of_fixed_width_are_filled_up(vision_order):
    order = vision_order("page_boxes")
    crop = order.outputs[0].dimensions
    order = with_shape(order, "crop", *crop[:3], Dimension("", 320))
    probabilities = np.zeros((1, 1, 32, 64), np.float32)
    probabilities[..., 12:20, 8:56] = 1

    (line,) = run(order, **page_inputs(probabilities))["crop"]

    assert line.shape == (1, 3, 48, 320)
    assert line[..., 0] == pytest.approx(np.full((1, 3, 48), 200 / 127.5 - 1), abs=1e-6)
    assert not line[..., -1].any()


def test_a_map_that_is_no_probability_is_refused(vision_order):
    error = refusal(vision_order("page_boxes"), **page_inputs(np.full((1, 1, 32, 64), np.nan)))

    assert isinstance(error, FieldInvalidError)
    assert "not a number" in error.message


@pytest.mark.parametrize("area", [(0, 0, 65, 32), (-1, 0, 64, 32), (0, 0, 0, 32), (0, 1, 64, 32)])
def test_an_area_outside_of_the_map_is_refused(vision_order, area):
    inputs = page_inputs(np.zeros((1, 1, 32, 64))) | {"area": [np.array(area, np.int32)]}
    error = refusal(vision_order("page_boxes"), **inputs)

    assert isinstance(error, FieldInvalidError)
    assert "same page_prepare" in error.message


@pytest.mark.parametrize(
    ("function", "port", "dimensions", "words"),
    [
        ("page_prepare", "image", (8, 8, 4), "it must be 3"),
        ("page_prepare", "canvas", (1, 1, 64, 64), "it must be 3"),
        ("page_prepare", "canvas", (1, 3, 100, 64), "multiple of 32"),
        ("photo_prepare", "pixels", (1, 3, 224, 200), "one number"),
        ("page_boxes", "area", (5,), "[4]"),
        ("page_boxes", "map", (2, 1, 32, 32), "[1, 1, height, width]"),
        ("page_text", "class", (2, 300), "[1, steps]"),
    ],
)
def test_ports_of_another_shape_are_refused_at_the_load(
    vision_order, function, port, dimensions, words
):
    order = with_shape(vision_order(function), port, *(Dimension("", it) for it in dimensions))

    assert words in refused_load(order).message


def test_one_thread_is_in_force_and_as_many_as_the_order_says(vision_order):
    order = vision_order("photo_prepare")
    for count in (2, 1):
        with Trial(FunctionExecutor, replace(order, thread_count=count), {}) as trial:
            assert trial.stage.thread_settings == {"opencv.threads": str(count)}


def test_an_environment_without_opencv_is_refused_with_the_remedy(vision_order, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)

    with pytest.raises(EnvironmentBrokenError, match="build the environment from its lock"):
        FunctionExecutor().load(vision_order("page_boxes"), lambda _: None)
