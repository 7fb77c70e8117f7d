"""The command line itself: help, typos, exit codes of usage, what is imported."""

import subprocess
import sys

import pytest

from coordinator.cli.main import COMMANDS, CommandGroup, app
from coordinator.cli.main import run as run_program
from stagewire.errors import ExitCode

pytestmark = pytest.mark.integration


def test_the_help_imports_nothing_heavy():
    code = (
        "import sys; from coordinator.cli.main import run; code = run(['--help']);"
        "heavy = {'grpc', 'numpy', 'pydantic', 'rich', 'yaml', 'asyncio', 'google.protobuf'};"
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_that_begins_like_its_line(name, capsys):
    assert run_program([name, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[name].rstrip(".").split(",")[0].split(":")[0] in shown


def test_the_program_has_the_commands_of_its_help():
    assert app.info.cls is CommandGroup
    assert CommandGroup(name="coordinator").list_commands(None) == list(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Commands:"),
        (["upp"], "Did you mean 'up'"),
        (["xyzzy"], "No such command"),
        (["up", "--plam", "x"], "No such option"),
        (["--verbos", "up"], "No such option"),
        (["up"], "--plan"),
        (["plan"], "--plan"),
        (["plan", "--ram", "lots", "--plan", "x"], "KiB"),
        (["run"], "--pipeline"),
        (["run", "--pipeline", "p", "--input", "x"], "port=VALUE"),
        (["run", "--pipeline", "p", "--input", "x=1", "--input", "x=2"], "twice"),
        (["run", "--pipeline", "p", "--timeout", "soon"], "--timeout"),
        (["down", "--timeout", "-1"], "--timeout"),
        (["artifacts"], "Missing command"),
        (["artifacts", "pul"], "pul"),
        (["restart"], "WORKER"),
        (["status", "extra"], "extra"),
    ],
)
def test_wrong_usage_ends_with_64_and_says_what_is_wrong(program, arguments, says):
    result = program.run(*arguments)
    assert result.returncode == ExitCode.USAGE
    assert says in result.stderr
    assert result.stdout == ""


def test_the_version_is_told(program):
    result = program.run("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("stagewire ")
