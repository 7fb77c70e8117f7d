"""Workers put the text of a caught exception into no failure, unless paths are taken out of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for folder in ("workers/*/worker_*", "workers/ortkit/ortkit", "sdk/stagewire/worker")
    for package in ROOT.glob(folder)
    for path in package.rglob("*.py")
}
SAFE_CALL = "library_text"
OWN_TEXT = ("message", "strerror")
"""Attributes that hold no text of a library: of our own failures, and of the operating system."""


def leaks(tree: ast.AST) -> Iterator[int]:
    """Lines where a caught exception itself is made a part of what is raised."""
    for caught in ast.walk(tree):
        if not isinstance(caught, ast.ExceptHandler) or caught.name is None:
            continue
        for raised in ast.walk(caught):
            if isinstance(raised, ast.Raise) and raised.exc is not None:
                yield from uses(raised.exc, caught.name)


def uses(node: ast.AST, name: str) -> Iterator[int]:
    match node:
        case ast.Call(func=ast.Name(id=called)) if called == SAFE_CALL:
            return
        case ast.Attribute(value=ast.Name(id=used), attr=attribute) if (
            used == name and attribute in OWN_TEXT
        ):
            return
        case ast.Name(id=used) if used == name:
            yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from uses(child, name)


TRY = "try: load()\nexcept RuntimeError as error:\n    raise LoadFailedError({}) from error"


@pytest.mark.parametrize(
    "text", ['f"it failed: {error}"', 'f"{error!r}"', 'f"{str(error)[:9]}"', "str(error)"]
)
def test_the_text_of_an_exception_in_a_failure_is_recognised(text):
    assert list(leaks(ast.parse(TRY.format(text))))


@pytest.mark.parametrize(
    "text", ['"it failed"', 'f"it failed: {library_text(error)}"', "error.message"]
)
def test_other_texts_are_let_through(text):
    assert not list(leaks(ast.parse(TRY.format(text))))


def test_no_failure_of_a_worker_holds_the_text_of_a_library():
    assert len(MODULES) > 20
    assert not [
        f"{path}:{line}" for path, text in MODULES.items() for line in leaks(ast.parse(text))
    ]
