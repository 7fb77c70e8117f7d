"""The failure table is complete and holds nothing else, and its page is fresh."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stagewire import errors
from stagewire.errors import (
    Code,
    ExitCode,
    Fault,
    Refusal,
    StageError,
    every_failure,
    failure_class,
)

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
every_class = pytest.mark.parametrize(
    "failure", every_failure(), ids=lambda failure: failure.__name__
)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_errors", ROOT / "docs/generate_errors.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_fresh(generator):
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert page == generator.render(), "run `poe docs`"


def test_every_reason_has_one_anchor(generator):
    anchors = re.findall(r'<a id="([^"]+)"></a>', generator.render())
    assert sorted(anchors) == sorted(failure.reason for failure in every_failure())


def test_every_exit_code_is_explained(generator):
    assert set(generator.EXIT_CODE_MEANINGS) == set(ExitCode)


def test_reasons_are_unique():
    reasons = [failure.reason for failure in every_failure()]
    assert len(reasons) == len(set(reasons))


def test_every_class_of_the_module_is_in_the_table():
    def below(parent: type[StageError]) -> set[type[StageError]]:
        return {c for child in parent.__subclasses__() for c in {child, *below(child)}}

    own = {failure for failure in below(StageError) if failure.__module__ == errors.__name__}
    assert own - {Refusal, Fault} == set(every_failure())


def made(text: str) -> Iterator[str]:
    """Names of classes that a module raises or makes."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Raise(exc=ast.Name(id=name)):
                yield name


def test_every_failure_is_raised_somewhere_in_the_product():
    names = {
        name
        for folder in (
            "coordinator",
            "sdk/stagewire",
            "workers/*/worker_*",
            "workers/ortkit/ortkit",
        )
        for package in ROOT.glob(folder)
        for path in package.rglob("*.py")
        if path != Path(errors.__file__)
        for name in made(path.read_text(encoding="utf-8"))
    }
    assert not {failure.__name__ for failure in every_failure()} - names


@every_class
def test_a_reason_is_upper_snake_and_leads_back_to_its_class(failure):
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", failure.reason)
    assert failure_class(failure.reason) is failure


@every_class
def test_a_failure_is_either_a_refusal_or_a_fault(failure):
    assert issubclass(failure, Refusal) != issubclass(failure, Fault)


@every_class
def test_a_failure_says_what_it_means_and_what_to_do(failure):
    assert failure.__doc__.strip().endswith(".")
    assert failure.__doc__ != failure.__mro__[1].__doc__
    assert failure.recovery
    assert not failure.recovery.endswith(".")
    assert failure.recovery[0].islower() or failure.recovery[0] == "`"


@every_class
def test_codes_are_canonical_and_no_failure_exits_as_if_it_had_worked(failure):
    assert failure.code in Code
    assert failure.exit_code not in (ExitCode.OK, ExitCode.USAGE, ExitCode.INTERRUPTED)


@every_class
def test_the_exit_code_tells_a_refusal_from_a_fault(failure):
    refused = {
        ExitCode.REFUSED,
        ExitCode.HELD,
        ExitCode.UNSAFE_CONFIGURATION,
    }
    assert (failure.exit_code in refused) == issubclass(failure, Refusal)


@every_class
def test_only_a_fault_may_be_unavailable(failure):
    if failure.code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED):
        assert issubclass(failure, Fault)


def test_an_unknown_reason_of_a_newer_peer_is_an_internal_fault():
    assert failure_class("REASON_OF_THE_FUTURE") is errors.InternalFaultError


def test_facts_are_kept_as_text_beside_the_message():
    failure = errors.MemoryBusyError(
        "machine:ram has 5 bytes free", retry_delay_ms=40, free_bytes=5
    )
    assert str(failure) == failure.message == "machine:ram has 5 bytes free"
    assert failure.facts == {"free_bytes": "5"}
    assert failure.retry_delay_ms == 40
