"""The demo of an image with pretended stages: what it says and leaves, and what it refuses."""

import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coordinator.cli.demo_page import Page
from coordinator.cli.screen import Screen
from stagewire.client import Output
from stagewire.errors import ExitCode

from .conftest import Terminal, wait_until_gone

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
PLAN = ROOT / "plans" / "page.yaml"


def assert_nothing_is_left(program):
    assert list(program.temporary.iterdir()) == []
    assert not program.state.exists(), "the demo has a state folder of its own"


def test_the_demo_reads_and_labels_an_image_and_leaves_nothing_running(program):
    result = program.run("demo", "page", "--fake")
    assert result.returncode == 0, result.stderr
    assert f"image: {ROOT / 'samples' / 'page.png'}" in result.stderr
    for part in (
        "read: \n  100 %  fake.\n",
        "label: fake. (100 %)",
        "answer: fake.",
        "ask_for_caption  cpu     cpu",
        "memory / budget",
        "first line after ",
        "was pretended",
    ):
        assert part in result.stdout
    assert "reply" not in result.stdout
    assert list(program.root.glob("*.wav")) == []
    assert_nothing_is_left(program)


def test_the_demo_shows_a_table_that_moves_on_a_terminal(program):
    terminal = Terminal(program, "demo", "page", "--fake")
    assert terminal.end() == 0
    assert "\x1b[" in terminal.output
    assert "label: fake. (100 %)" in terminal.output
    assert terminal.output.count("was pretended") == 1


@pytest.mark.parametrize("option", [("--output", "x.wav"), ("--no-speech",), ("--play",)])
def test_options_of_the_voice_are_refused(program, option):
    result = program.run("demo", "page", "--fake", *option)
    assert result.returncode == ExitCode.USAGE
    assert f"{option[0]}: the demo page has no spoken reply; leave it out" in result.stderr
    assert_nothing_is_left(program)


def test_a_demo_that_is_not_there_is_refused_with_those_that_are(program):
    result = program.run("demo", "pages")
    assert result.returncode == ExitCode.USAGE
    assert "'voice', 'page'" in result.stderr


@pytest.mark.parametrize(("width", "height"), [(4097, 1), (1, 5000)])
def test_an_image_over_the_limit_of_the_plan_is_refused_with_what_makes_it_smaller(
    program, width, height
):
    Image.new("RGB", (width, height)).save(program.root / "wide.png")
    result = program.run("demo", "page", "--fake", "--input", "wide.png")
    assert result.returncode == ExitCode.REFUSED
    assert (
        f"MEDIA_INVALID: wide.png has {width} x {height} pixels; the plan takes up to 4096 x 4096;"
        " make it smaller, for example with `magick IN -resize 4096x4096 OUT.png`" in result.stderr
    )
    assert "starting" not in result.stdout + result.stderr
    assert_nothing_is_left(program)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("no.png", None, "no.png"),
        ("words.png", b"some words", "text, not"),
        ("0.png", b"", "empty"),
    ],
)
def test_what_is_no_image_is_refused_before_anything_starts(program, name, content, says):
    if content is not None:
        (program.root / name).write_bytes(content)
    result = program.run("demo", "page", "--fake", "--input", name)
    assert result.returncode == ExitCode.REFUSED
    assert "MEDIA_INVALID: " in result.stderr
    assert says in result.stderr
    assert "starting" not in result.stdout + result.stderr


def test_a_kept_demo_is_asked_again_and_stopped_with_ctrl_c(program):
    demo = program.start("demo", "page", "--fake", "--keep", "--state", program.state)
    command = demo.wait_for("  coordinator run ").split()[1:]
    workers = demo.children()

    again = program.run(*command)

    assert again.returncode == 0, again.stderr
    assert "label: fake." in again.stdout
    demo.send(signal.SIGINT)
    assert demo.end() == 0
    wait_until_gone(workers)


@pytest.fixture
def page(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "small.png")
    return Page(PLAN, tmp_path / "small.png")


def test_a_line_is_shown_once_its_confidence_is_known_whichever_comes_first(page):
    assert list(page.take(Output("lines", "one", 0))) == []
    assert list(page.take(Output("lines", "two", 0))) == []
    assert list(page.take(Output("confidences", np.float32(0.994), 0))) == [
        ("read", "\n   99 %  one")
    ]
    assert list(page.take(Output("confidences", np.float32(0.5), 0))) == [
        ("read", "\n   50 %  two")
    ]
    assert list(page.take(Output("probability", np.float32(0.25), 0))) == []
    assert list(page.take(Output("label", "a cup", 0))) == [("label", "a cup (25 %)")]


def test_an_image_without_text_says_so(page, capsys):
    list(page.take(Output("label", "a cup", 0)))
    page.conclude(Screen())
    assert capsys.readouterr().out == (
        "read: no text; the label alone is what the answer is made of\n"
    )
