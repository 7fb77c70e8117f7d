"""The page and label plans on real images, with real models, in real worker processes."""

import time
from pathlib import Path

import numpy as np
import pytest

from stagewire.client import image
from stagewire.errors import TensorMismatchError

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(2400)]

REQUEST_SECONDS = 600.0
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
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


def test_a_photographed_page_is_read_line_by_line(page):
    result = page.run("read", {"image": image(SAMPLES / "page.png")}, timeout=REQUEST_SECONDS)

    lines = result.items("lines")
    exact = [line for line in lines if line in PAGE]
    print(f"{len(exact)} of {len(PAGE)} lines are exact")
    assert len(exact) >= 6
    assert exact == sorted(exact, key=PAGE.index)
    confidences = [float(item) for item in result.items("confidences")]
    assert len(confidences) == len(lines)
    assert min(confidences) >= 0.5
    assert all(stage.verdict.name == "FULL" for stage in result.receipt.stages)


def test_a_page_is_summarised_in_words(page):
    result = page.run("page", {"image": image(SAMPLES / "page.png")}, timeout=REQUEST_SECONDS)

    assert len(result.items("lines")) >= 6
    assert len(result.text("answer").split()) >= 5


def test_one_image_goes_two_ways_that_meet_again(page):
    result = page.run("both", {"image": image(SAMPLES / "coffee.png")}, timeout=REQUEST_SECONDS)

    assert result.items("label") == ["espresso"]
    assert float(result.items("probability")[0]) > 0.5
    assert result.items("lines") == []
    assert result.text("answer")
    ran = {stage.stage_id for stage in result.receipt.stages}
    assert {"recognise", "spell", "classify", "name", "ask_for_caption", "answer"} <= ran


def test_a_page_without_text_has_no_line_and_no_summary(page):
    black = np.zeros((300, 400, 3), np.uint8)

    result = page.run("page", {"image": black}, timeout=REQUEST_SECONDS)

    assert result.items("lines") == []
    assert result.text("answer") == ""


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((300, 400), np.uint8),
        np.zeros((300, 400, 4), np.uint8),
        np.zeros((1, 20_000, 3), np.uint8),
        np.zeros((0, 10, 3), np.uint8),
    ],
    ids=["grey", "transparent", "a thread", "nothing"],
)
def test_what_is_no_image_is_refused_and_the_next_one_is_read(page, pixels):
    with pytest.raises(TensorMismatchError, match="image"):
        page.run("read", {"image": pixels}, timeout=REQUEST_SECONDS)

    result = page.run("read", {"image": image(SAMPLES / "page.png")}, timeout=REQUEST_SECONDS)
    assert len(result.items("lines")) >= 6


def test_measured_memory_stays_within_the_budget_of_the_plan(page):
    """At the largest image that the plan takes, full of text."""
    line = image(SAMPLES / "page.png")[60:82]
    largest = np.tile(line, (4096 // 22 + 1, 4096 // 384 + 1, 1))[:4096, :4096]
    result = page.run("both", {"image": largest}, timeout=REQUEST_SECONDS)
    assert result.text("answer")

    deadline = time.monotonic() + 60
    for state in page.watch(timeout=60):
        measured = [worker.measured_bytes for worker in state.workers]
        if all(measured) or time.monotonic() > deadline:
            break
    for worker in page.placement().workers:
        print(f"{worker.worker_id}: {worker.peak_bytes >> 20} of {worker.reserved_bytes >> 20} MiB")
        assert 0 < worker.peak_bytes <= worker.reserved_bytes


def test_a_photo_is_labelled_and_explained(label):
    result = label.run("label", {"image": image(SAMPLES / "coffee.png")}, timeout=REQUEST_SECONDS)

    assert result.items("label") == ["espresso"]
    assert float(result.items("probability")[0]) > 0.5
    assert len(result.text("answer").split()) >= 5


def test_a_photo_is_labelled_alone(label):
    result = label.run(
        "classify", {"image": image(SAMPLES / "coffee.png")}, timeout=REQUEST_SECONDS
    )

    assert result.items("label") == ["espresso"]
    assert {stage.stage_id for stage in result.receipt.stages} == {"centre", "classify", "name"}
