"""What pages show can be read: Python compiles, plans load, commands are those of the program."""

import ast
import contextlib
import textwrap

import pytest
import typer

from coordinator.cli.main import app
from coordinator.plan.loading import parse_plan
from testkit.snippets import PAGES, ROOT, commands, snippets

pytestmark = pytest.mark.unit

PYTHON = [snippet for page in PAGES for snippet in snippets(page, "python")]
PLANS = [
    snippet
    for page in PAGES
    for snippet in snippets(page, "yaml")
    if snippet.text.startswith("apiVersion:")
]
COMMANDS = [command for page in PAGES for command in commands(page)]
PLACEHOLDERS = {"COMMAND"}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    """Where a reader of the pages types their commands: plans that they name have to be there."""
    monkeypatch.chdir(ROOT)


def test_the_pages_are_seen():
    assert len(PAGES) > 15
    assert len(PYTHON) > 8
    assert PLANS
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("snippet", PYTHON, ids=str)
def test_python_can_be_compiled(snippet):
    code = textwrap.dedent(snippet.text)
    # Some blocks show a part of a function.
    compile(code, str(snippet), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("snippet", PLANS, ids=str)
def test_a_whole_plan_breaks_no_rule(snippet):
    parse_plan(snippet.text.encode(), snippet.page)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.where)
def test_a_command_is_one_of_the_program(command):
    if command.words and command.words[0] in PLACEHOLDERS:
        return
    check(list(command.words), needs_all=not command.is_mention)


@pytest.mark.parametrize(
    "words",
    [
        ["stats"],
        ["plan", "--plam", "FILE"],
        ["plan", "--plan"],
        ["up", "--plan", "FILE", "--ram", "much"],
        ["artifacts", "pul", "--plan", "FILE"],
        ["restart"],
    ],
)
def test_what_is_no_command_is_recognised(words):
    with pytest.raises(typer.TyperException):
        check(words, needs_all=True)


def check(words: list[str], *, needs_all: bool) -> None:
    """Parses a command line as the program does, and runs nothing.

    Raises:
        typer.TyperException: the program would not accept it.
    """
    command, name = typer.main.get_command(app), "coordinator"
    words = ["plans/voice.yaml" if word == "FILE" else word for word in words]
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        context = command.make_context(name, [], resilient_parsing=True)
        name, *words = words
        command = command.get_command(context, name)
        if command is None:
            context.fail(f"no command {name!r}")
    is_whole = needs_all or any(word.startswith("-") for word in words)
    # Such as `--help`, which prints and ends.
    with contextlib.suppress(typer.Exit):
        command.make_context(name, words, resilient_parsing=not is_whole)


def test_the_readme_names_files_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Find your way")[2].partition("\n## ")[0]
    names = [part for part in table.split("`")[1::2] if "/" in part]
    assert names
    assert not [name for name in names if not (ROOT / name).exists()]
