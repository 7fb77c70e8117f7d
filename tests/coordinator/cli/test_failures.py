"""Failures at the edge: reason, message and recovery for people; the cause only in the log."""

import logging

import pytest

from coordinator.cli import failures
from stagewire.errors import AS_SAID, DiskFullError, ExitCode, LaneFullError, every_failure

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGEWIRE_STATE", str(tmp_path))


@pytest.mark.parametrize("failure", every_failure(), ids=lambda failure: failure.reason)
def test_every_failure_is_shown_with_its_reason_and_ends_with_its_exit_code(failure, capsys):
    code = failures.show(failure("it is so"))

    shown = capsys.readouterr()
    assert code == failure.exit_code
    assert shown.out == ""
    advice = "" if failure.recovery == AS_SAID else f"what to do: {failure.recovery}\n"
    assert shown.err == f"{failure.reason}: it is so\n{advice}"


def test_a_time_to_wait_is_shown(capsys):
    failures.show(LaneFullError("it is full", retry_delay_ms=200))
    assert capsys.readouterr().err.endswith("(200 ms)\n")


def test_notes_of_a_failure_are_shown(capsys):
    error = DiskFullError("it is full")
    error.add_note("the end of the log")
    failures.show(error)
    assert "it is full\nthe end of the log\nwhat to do: " in capsys.readouterr().err


def test_something_unexpected_ends_with_70_and_its_cause_is_only_in_the_log(tmp_path, capsys):
    code = failures.show(ValueError("a secret"))

    shown = capsys.readouterr().err
    log = (tmp_path / "logs" / "commands.log").read_text()
    assert code == ExitCode.INTERNAL
    assert "a secret" not in shown
    assert "ValueError: a secret" in log
    error_id = shown.split("error id ")[1].split(";")[0]
    assert f"error_id={error_id}" in log


def test_a_log_that_cannot_be_written_is_no_second_failure(tmp_path, capsys):
    (tmp_path / "logs").write_text("a file where the folder belongs")
    assert failures.show(ValueError("a secret")) == ExitCode.INTERNAL
    assert "a secret" not in capsys.readouterr().err


def test_the_cause_is_shown_when_debugging(capsys):
    logger = logging.getLogger("coordinator.cli")
    logger.setLevel(logging.DEBUG)
    try:
        assert failures.show(ValueError("a secret")) == ExitCode.INTERNAL
    finally:
        logger.setLevel(logging.NOTSET)
    assert "ValueError: a secret" in capsys.readouterr().err
