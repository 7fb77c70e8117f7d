"""What a person is told to type is what starts the program for that person."""

import ast
import os
import re
from pathlib import Path

import pytest

from coordinator.cli import failures
from coordinator.cli.main import COMMANDS
from coordinator.cli.spelling import program as program_name
from coordinator.cli.spelling import spelled
from stagewire.endpoint import state_option
from stagewire.errors import ExitCode, every_failure

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).resolve().parents[3] / "coordinator" / "cli"
MODULES = sorted(set(FOLDER.glob("*.py")) - {FOLDER / "spelling.py"})
HINT = re.compile(rf"`coordinator |^\s*coordinator ({'|'.join(COMMANDS)})\b")
COMMAND = re.compile(rf"`coordinator |\bcoordinator ({'|'.join(COMMANDS)})\b")


@pytest.fixture
def by_run(program):
    program.environment["STAGEWIRE_PROGRAM"] = "./run"
    return program


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), ExitCode.USAGE),
        (("upp",), ExitCode.USAGE),
        (("up",), ExitCode.USAGE),
        (("--help",), ExitCode.OK),
        (("artifacts", "pull", "--help"), ExitCode.OK),
        (("status",), ExitCode.FAULT),
        (("down",), ExitCode.FAULT),
        (("devices",), ExitCode.OK),
    ],
)
def test_every_command_is_spelled_as_it_was_typed(by_run, arguments, code):
    result = by_run.run(*arguments)
    shown = result.stdout + result.stderr
    assert result.returncode == code
    assert "./run" in shown
    assert not COMMAND.search(shown)
    assert "Usage: coordinator" not in shown


@pytest.mark.parametrize("failure", every_failure(), ids=lambda failure: failure.reason)
def test_every_recovery_is_spelled_as_it_was_typed(failure, monkeypatch, capsys):
    monkeypatch.setenv("STAGEWIRE_PROGRAM", "./run")
    failures.show(failure("see `coordinator status`"))
    shown = capsys.readouterr().err
    assert "see `./run status`" in shown
    assert not COMMAND.search(shown)


def test_a_hint_is_a_command_that_works(by_run):
    up = by_run.up(by_run.plan())
    assert up.wait_for("stop it with") == "stop it with Ctrl-C or `./run down`"
    assert by_run.run("down").returncode == 0
    assert up.end() == 0


def test_a_state_folder_is_named_unless_it_is_the_users_own(by_run):
    other = by_run.root / "an other"
    up = by_run.up(by_run.plan(), "--state", other)
    hint = up.wait_for("stop it with")
    assert f"`./run down --state '{other}'`" in hint
    assert by_run.run("down", "--state", other).returncode == 0


def test_the_path_of_the_program_may_have_spaces(monkeypatch):
    monkeypatch.setenv("STAGEWIRE_PROGRAM", "/my checkout/run")
    assert program_name() == "'/my checkout/run'"
    assert spelled("`coordinator up`") == "`'/my checkout/run' up`"


def test_without_the_script_it_is_called_by_its_name(monkeypatch):
    monkeypatch.delenv("STAGEWIRE_PROGRAM", raising=False)
    assert spelled("see `coordinator status`") == "see `coordinator status`"


def test_the_users_own_folder_needs_no_option(monkeypatch, tmp_path):
    monkeypatch.setenv("STAGEWIRE_STATE", str(tmp_path))
    assert state_option(tmp_path) == ""
    assert state_option(tmp_path / "x") == f" --state {tmp_path}{os.sep}x"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_hint_of_the_commands_goes_past_the_one_that_spells(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if hasattr(node, "body") and isinstance(node.body, list) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    safe = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "spelled"
        for part in ast.walk(call)
    }
    loose = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if HINT.search(node.value) and id(node) not in safe | documentation
    ]
    assert loose == []
