"""Where output goes: results and notes, pipes and terminals; what is imported for it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.cli.tables import doing, legend, limit_legend
from coordinator.facts.proof import Verdict as ProofVerdict
from stagewire.client.receipt import Grade, Verdict
from stagewire.client.state import Phase
from stagewire.errors import ExitCode

from .conftest import PROGRAM, Terminal

pytestmark = pytest.mark.integration
VOICE = Path(__file__).resolve().parents[3] / "plans" / "voice.yaml"
ON_A_PIPE = """
import sys
import coordinator.cli.demo, coordinator.cli.status, coordinator.cli.up
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from stagewire.client import Table
screen = Screen()
screen.line("a result", style="bold")
screen.table(Table(("a", "b"), (("1", "2"),)), "title")
screen.write("text")
Progress(screen).note("model", "fetching")
print(*(name for name in sys.modules if name.split(".")[0] == "rich"), file=sys.stderr)
"""


def test_what_moves_is_imported_only_where_something_moves():
    result = subprocess.run(
        [sys.executable, "-c", ON_A_PIPE], capture_output=True, text=True, check=True
    )
    assert result.stdout == "a result\n\ntitle\na  b\n1  2\ntext\n"
    assert result.stderr == "model: fetching\n\n"


def test_a_line_that_a_failure_leaves_open_is_ended():
    code = """
import contextlib
from coordinator.cli.screen import Screen
screen = Screen()
with contextlib.suppress(ValueError), screen.whole_lines():
    screen.write("half a ")
    raise ValueError
screen.line("told")
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "half a \ntold\n"


def test_a_reader_that_leaves_is_no_failure_of_the_program(program):
    process = subprocess.Popen(
        [*PROGRAM, "plan", "--plan", program.plan()],
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.wait(100) == ExitCode.FAULT
    with process.stderr as errors:
        assert errors.read() == b""


def shown_on(program, *arguments, **environment):
    terminal = Terminal(program, *arguments, columns=80, **environment)
    terminal.end()
    # Where the cursor goes back to draw again, another text begins.
    frames = re.sub(r"\x1b\[[0-9]*[AK]", "\n", terminal.output.replace("\r", ""))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--plan", VOICE),
        ("plan", "--plan", VOICE, "--ram", "900MiB"),
        ("doctor", "--plan", VOICE),
        ("devices", "--plan", VOICE),
        ("demo", "--fake", "--output", "r.wav"),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["moving", "still"])
def test_a_terminal_of_80_columns_is_enough(program, arguments, environment):
    shown = shown_on(program, *arguments, **environment)
    lines = [line.rstrip() for line in shown.splitlines()]
    # A path is not broken, wherever this checkout and the temporary folder lie.
    too_long = [line for line in lines if len(line) > 80 and str(program.root) not in line]
    assert [line for line in too_long if str(VOICE.parents[1]) not in line] == []
    assert len(lines) > 3


def test_a_running_plan_is_readable_on_80_columns_with_what_its_letters_mean(program):
    program.up(VOICE, "--fake")
    shown = shown_on(program, "status")
    assert max(map(len, shown.splitlines())) <= 80
    assert "full = all of the example ran on the device; B = the backend ran it" in shown
    assert "D = read off" in shown
    for letter in ("E", "C", "P"):
        assert f"{letter} = " not in shown
    assert max(map(len, shown_on(program, "devices").splitlines())) <= 80
    piped = program.run("devices").stdout
    assert len(piped.splitlines()) == 2, "what is piped is never broken"


@pytest.fixture
def state(program):
    """A state as a client sees it."""
    from stagewire.client import connect

    program.up(program.plan())
    with connect(program.state) as client:
        return client.placement()


def test_every_verdict_and_grade_that_is_shown_is_explained_and_no_other(state):
    for verdict in Verdict:
        for grade in Grade:
            stage = replace(state.stages[0], verdict=verdict, grade=grade)
            text = legend(replace(state, stages=(stage,)))
            letters = re.findall(r"\b([A-Z]) = ", text)
            names = re.findall(r"\b([a-z_]+) = ", text)
            assert letters == ([grade.name] if len(grade.name) == 1 else [])
            is_known = verdict.name.lower() in set(ProofVerdict)
            assert names == ([verdict.name.lower()] if is_known else [])
    assert limit_legend(state) == "D = read off"


@pytest.mark.parametrize("evidence", ["reading weights", "ready", "ran its example"])
@pytest.mark.parametrize("load_seconds", [None, 0.5])
@pytest.mark.parametrize("phase", Phase)
def test_a_stage_is_called_ready_when_it_is(state, evidence, load_seconds, phase):
    stage = replace(state.stages[0], phase=phase, evidence=evidence, load_seconds=load_seconds)
    assert ("ready" in doing(stage)) == (phase is Phase.READY)
