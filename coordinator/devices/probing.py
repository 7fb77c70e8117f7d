"""Probing: reads of a machine that change nothing, end in time, and say why they find nothing."""

import enum
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

PROBE_SECONDS: Final = 5.0
"""Time limit of one probe."""
_FILE_BYTES: Final = 8 << 20
"""Most that is read of one file; /proc/cpuinfo of 512 cores is under 1 MiB."""

T = TypeVar("T")


class ProbeFailure(enum.StrEnum):
    """Why a probe found nothing."""

    MISSING = "missing"
    """What it reads is not there."""
    DENIED = "denied"
    """It may not be read."""
    UNREADABLE = "unreadable"
    """Reading it failed."""
    MALFORMED = "malformed"
    """It does not say what it should."""
    TIMED_OUT = "timed_out"
    """It did not answer in time."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """What a probe answers when it found nothing."""

    failure: ProbeFailure
    detail: str


class ProbeError(Exception):
    """Carries why a probe found nothing out of its depth; never leaves this package."""

    def __init__(self, failure: ProbeFailure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


def run_probe(name: str, probe: Callable[[], T], limit_seconds: float) -> T | Unavailable:
    """Runs a probe and returns its value, or why there is none, within the limit."""
    answers: queue.Queue[T | Unavailable | BaseException] = queue.Queue()

    def answer() -> None:
        try:
            answers.put(probe())
        except ProbeError as error:
            answers.put(Unavailable(error.failure, error.detail))
        except OSError as error:
            answers.put(_unavailable(name, error))
        except BaseException as error:
            answers.put(error)

    # A read that hangs cannot be ended; as a daemon it does not keep the process alive either.
    threading.Thread(target=answer, name=f"probe {name}", daemon=True).start()
    try:
        found = answers.get(timeout=limit_seconds)
    except queue.Empty:
        return Unavailable(
            ProbeFailure.TIMED_OUT, f"{name} did not answer within {limit_seconds:g} s"
        )
    if isinstance(found, BaseException):
        raise found
    return found


def read_text(path: Path) -> str:
    """Returns the text of a file of /proc or /sys.

    Raises:
        ProbeError: it is too long.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(_FILE_BYTES + 1)
    if len(content) > _FILE_BYTES:
        raise ProbeError(ProbeFailure.MALFORMED, f"{path} is longer than any such file")
    return content.decode("utf-8", errors="replace")


def _unavailable(name: str, error: OSError) -> Unavailable:
    if isinstance(error, FileNotFoundError):
        failure = ProbeFailure.MISSING
    elif isinstance(error, PermissionError):
        failure = ProbeFailure.DENIED
    else:
        failure = ProbeFailure.UNREADABLE
    return Unavailable(failure, f"{name}: {error.strerror or error}: {error.filename}")
