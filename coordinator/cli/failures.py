"""Failures at the outermost edge: what a person reads of them, and the exit code."""

import logging
import secrets
import sys
import traceback
from pathlib import Path
from typing import Final

import typer

from coordinator.artifacts.trouble import failure_of_machine
from coordinator.cli.layout import wrapped
from coordinator.cli.screen import width_of
from coordinator.cli.spelling import program, spelled
from stagewire.errors import AS_SAID, ExitCode, StageError
from stagewire.limits import LOG_BYTES

_log = logging.getLogger("coordinator.cli")
_LOG_NAME: Final = "commands.log"


def begin_logging(*, is_debugging: bool) -> None:
    """Shows warnings on standard error, or everything when debugging."""
    level = logging.DEBUG if is_debugging else logging.WARNING
    handler = logging.StreamHandler()
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    for name in ("coordinator", "stagewire"):
        logging.getLogger(name).setLevel(level)


def show(error: Exception) -> int:
    """Prints a failure to standard error and returns its exit code."""
    error = failure_of_machine(error) or error
    if not isinstance(error, StageError):
        return _show_internal(error)
    if _log.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    lines = [f"{error.reason}: {error.message}", *getattr(error, "__notes__", ())]
    if error.recovery != AS_SAID:
        delay = f" ({error.retry_delay_ms} ms)" if error.retry_delay_ms is not None else ""
        lines.append(f"what to do: {error.recovery}{delay}")
    _tell("\n".join(lines))
    return error.exit_code


def show_usage(error: typer.TyperException) -> int:
    """Prints what is wrong with a command line and returns the exit code of wrong usage."""
    # Typer's error of usage has a context; the public class above it does not say so.
    context = getattr(error, "ctx", None)
    if context is not None:
        _tell(f"{context.get_usage()}\nTry '{context.command_path} --help'.")
    _tell(f"Error: {error.format_message()}")
    return ExitCode.USAGE


def _tell(text: str) -> None:
    typer.echo(wrapped(spelled(text), width_of(sys.stderr)), err=True)


def _show_internal(error: Exception) -> int:
    error_id = secrets.token_hex(4)
    where = f"the cause: `{program()} --debug ...` shows it"
    if _log.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
        where = "the cause stands above"
    elif (path := _write(error, error_id)) is not None:
        where = f"the cause stands in {path}"
    _tell(
        f"INTERNAL_FAULT: something unexpected happened, error id {error_id}; {where}\n"
        "what to do: report it, with the cause"
    )
    return ExitCode.INTERNAL


def _write(error: Exception, error_id: str) -> Path | None:
    """Logs the traceback beside the logs of coordinators; None when that folder is of no use."""
    from coordinator.app.log_file import PrivateLog
    from coordinator.cli.options import own_folder

    try:
        path = own_folder("logs") / _LOG_NAME
        handler = PrivateLog(path, maxBytes=LOG_BYTES, backupCount=1)
    except (OSError, StageError):
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    # Of its own: the handlers of the root would show it on standard error.
    record = logging.LogRecord(
        _log.name,
        logging.ERROR,
        __file__,
        0,
        "internal fault error_id=%s arguments=%s",
        (error_id, sys.argv[1:2]),
        (type(error), error, error.__traceback__),
    )
    handler.emit(record)
    handler.close()
    return path
