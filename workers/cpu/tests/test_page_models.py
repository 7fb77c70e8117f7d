"""Stages of the page and label plans with real models, one after the other in this process."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import CHECKS, Trial
from stagewire.worker.executor import StageOrder
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.onnx import OnnxExecutor

pytestmark = pytest.mark.end_to_end

PAPER = (245, 243, 238)
TEXT = [
    "The quick brown fox jumps over the lazy dog.",
    "Invoice No. 20417, dated 3 March 1998",
    "Total amount due: 1,284.50 EUR (net)",
    "Please reply to office@example.com by Friday",
    "All rights reserved; terms & conditions apply",
    "Shelf B-12, box 7: 40 screws, 6 mm",
]
LEFT = ["Once there was a baker who", "lived at the edge of a wood,", "and every morning he rose"]
RIGHT = ["One day a stranger came and", "asked for a loaf of bread, but", "he had no coin to pay."]
TITLE = "A title that spans both of the columns"
PAGE = [
    "Region-based segmentation",
    "Let us first determine markers of the coins and the",
    "background. These markers are pixels that we can label",
    "unambiguously as either object or background. Here,",
    "the markers are found at the two extreme parts of the",
    "histogram of grey values:",
    # The detector leaves out the three signs of the prompt.
    ">>> markers = np.zeros_like(coins)",
]


def detector_order(models) -> StageOrder:
    sides = (Dimension("height", 1600), Dimension("width", 1600))
    one, three = Dimension("", 1), Dimension("", 3)
    return StageOrder(
        "find",
        "onnx",
        "cpu",
        artifact_format="onnx:fp32",
        files={"detector.onnx": models / "line-detector.onnx"},
        options={"example_extents": {"height": 64, "width": 64}},
        inputs=(Port("x", DataType.FLOAT32, (one, three, *sides)),),
        outputs=(Port("fetch_name_0", DataType.FLOAT32, (one, one, *sides)),),
    )


def recogniser_order(models) -> StageOrder:
    one, steps = Dimension("", 1), Dimension("steps", 300)
    crop = (one, Dimension("", 3), Dimension("", 48), Dimension("width", 2400))
    return StageOrder(
        "read",
        "onnx",
        "cpu",
        artifact_format="onnx:fp32",
        files={"recogniser.onnx": models / "line-recogniser.onnx"},
        options={"largest": ["fetch_name_0"], "example_extents": {"width": 48}},
        inputs=(Port("x", DataType.FLOAT32, crop, is_stream=True),),
        outputs=(
            Port("fetch_name_0_index", DataType.INT64, (one, steps), is_stream=True),
            Port("fetch_name_0_value", DataType.FLOAT32, (one, steps), is_stream=True),
        ),
    )


def classifier_order(models) -> StageOrder:
    return StageOrder(
        "classify",
        "onnx",
        "cpu",
        artifact_format="onnx:fp16",
        files={path.name: path for path in (models / "efficientnet-lite0").iterdir()},
        inputs=(
            Port(
                "pixels",
                DataType.FLOAT32,
                tuple(Dimension("", extent) for extent in (1, 3, 224, 224)),
            ),
        ),
        outputs=(Port("logits", DataType.FLOAT32, (Dimension("", 1), Dimension("", 1000))),),
    )


@pytest.fixture(scope="module")
def read_page(models, vision_order):
    """Reads the lines of an image."""
    spell = replace(
        vision_order("page_text"), files={"recogniser.onnx": models / "line-recogniser.onnx"}
    )
    with (
        Trial(FunctionExecutor, vision_order("page_prepare"), {}) as prepare,
        Trial(OnnxExecutor, detector_order(models), {}) as find,
        Trial(FunctionExecutor, vision_order("page_boxes"), {}) as cut,
        Trial(OnnxExecutor, recogniser_order(models), {}) as recognise,
        Trial(FunctionExecutor, spell, {}) as texts,
    ):

        def read(image: np.ndarray) -> list[str]:
            prepared = prepare.complete({"image": [image]}, "prepare")
            found = find.complete({"x": prepared["canvas"]}, "find")
            crops = cut.complete(
                {
                    "image": prepared["image"],
                    "area": prepared["area"],
                    "map": found["fetch_name_0"],
                },
                "cut",
            )
            steps = recognise.complete({"x": crops["crop"]}, "recognise")
            lines = texts.complete(
                {"class": steps["fetch_name_0_index"], "probability": steps["fetch_name_0_value"]},
                "spell",
            )
            return lines["line"]

        yield read


@pytest.fixture(scope="module")
def label_photo(models, vision_order):
    """Says what an image shows, and how sure that is."""
    order = vision_order("top_label")
    classes = replace(order.inputs[0], dimensions=(Dimension("", 1), Dimension("", 1000)))
    names = models / "efficientnet-lite0" / "imagenet1k_clean_names.json"
    order = replace(order, inputs=(classes,), files={names.name: names})
    with (
        Trial(FunctionExecutor, vision_order("photo_prepare"), {}) as prepare,
        Trial(OnnxExecutor, classifier_order(models), {}) as classify,
        Trial(FunctionExecutor, order, {}) as name,
    ):

        def label(image: np.ndarray) -> tuple[str, float]:
            pixels = prepare.complete({"image": [image]}, "prepare")["pixels"]
            logits = classify.complete({"pixels": pixels}, "classify")["logits"]
            named = name.complete({"logits": logits}, "name")
            return named["label"][0], float(named["probability"][0])

        yield label


def written(*blocks: tuple[int, int, list[str]], size=(900, 380), height=28) -> np.ndarray:
    """Text in blocks of (x, y, lines) on paper."""
    page = Image.new("RGB", size, PAPER)
    pen = ImageDraw.Draw(page)
    for x, y, lines in blocks:
        for index, line in enumerate(lines):
            at = (x, y + 1.6 * height * index)
            pen.text(at, line, font=ImageFont.load_default(height), fill=(20, 20, 20))
    return np.array(page)


def turned(image: np.ndarray, degrees: float) -> np.ndarray:
    """The image on a larger sheet of paper, turned."""
    return np.array(
        Image.fromarray(image).rotate(
            degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=PAPER
        )
    )


def seen_aslant(image: np.ndarray) -> np.ndarray:
    """The page as a camera sees it that stands beside it."""
    height, width = image.shape[:2]
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    moved = np.array(
        [(0.12 * width, 0), (0.94 * width, 0.12 * height), (width, height), (0, 0.88 * height)],
        np.float32,
    )
    matrix = cv2.getPerspectiveTransform(corners, moved)
    return cv2.warpPerspective(image, matrix, (width, height), borderValue=PAPER)


def test_a_photographed_page_is_read(read_page, picture):
    lines = read_page(picture("page.png"))

    exact = [line for line in lines if line in PAGE]
    assert len(exact) >= 6
    assert exact == sorted(exact, key=PAGE.index)


@pytest.mark.parametrize("degrees", [-40, -15, -6, -2, 0, 3, 8, 15, 40])
def test_a_turned_page_is_read_line_by_line(read_page, degrees):
    assert read_page(turned(written((40, 40, TEXT)), degrees)) == TEXT


@pytest.mark.parametrize(
    "change",
    [seen_aslant, lambda image: 255 - image, lambda image: cv2.GaussianBlur(image, (0, 0), 1.5)],
    ids=["aslant", "light on dark", "blurred"],
)
def test_a_page_that_is_hard_to_read_is_read(read_page, change):
    assert read_page(change(written((40, 40, TEXT)))) == TEXT


@pytest.mark.parametrize("degrees", [0, 4])
def test_columns_are_read_one_after_the_other(read_page, degrees):
    image = written((60, 30, [TITLE]), (60, 110, LEFT), (600, 110, RIGHT), size=(1100, 290))

    assert read_page(turned(image, degrees)) == [TITLE, *LEFT, *RIGHT]


def test_a_page_that_was_turned_clockwise_by_a_right_angle_is_read(read_page):
    assert read_page(np.rot90(written((40, 40, TEXT)), -1).copy()) == TEXT


def test_one_word_and_one_line_are_read(read_page):
    assert read_page(written((30, 10, ["Hello"]), size=(200, 70), height=40)) == ["Hello"]
    assert read_page(written((2, 2, TEXT[:1]), size=(600, 34))) == TEXT[:1]


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((1, 1, 3), np.uint8),
        np.zeros((300, 400, 3), np.uint8),
        np.full((300, 400, 3), 255, np.uint8),
        np.full((1, 15_000, 3), 255, np.uint8),
        np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8),
    ],
    ids=["one pixel", "black", "white", "a thread", "noise"],
)
def test_what_is_no_page_has_no_line(read_page, image):
    assert read_page(image) == []


def test_a_photo_of_coffee_is_labelled(label_photo, picture):
    label, probability = label_photo(picture("coffee.png"))

    assert label == "espresso"
    assert probability > 0.5


@pytest.mark.parametrize("shape", [(1, 1, 3), (300, 400, 3)])
def test_a_black_photo_has_some_label(label_photo, shape):
    label, probability = label_photo(np.zeros(shape, np.uint8))

    assert label
    assert 0 < probability <= 1


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["detector", "recogniser", "classifier"])
def test_the_executor_conforms(models, kind, check):
    make, inputs = {
        "detector": (detector_order, {"x": [np.zeros((1, 3, 64, 96), np.float32)]}),
        "recogniser": (
            recogniser_order,
            {"x": [np.ones((1, 3, 48, width), np.float32) for width in (31, 320, 1)]},
        ),
        "classifier": (classifier_order, {"pixels": [np.ones((1, 3, 224, 224), np.float32)]}),
    }[kind]
    with Trial(OnnxExecutor, make(models), inputs, patience_seconds=600) as trial:
        check(trial)
