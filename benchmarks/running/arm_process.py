"""The process of one arm: ordered by lines on its input, answering with JSON lines."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.judging.declarations import ARM_ROLE, ArmSpec
from benchmarks.judging.proofs import Seen

_LEAVE_SECONDS: Final = 60.0
_READ_BYTES: Final = 64 << 10
_LOG_LINES: Final = 15
_CODE: Final = "code"
"""Fact that holds import paths."""


class ArmFailedError(Exception):
    """An arm crashed, hung, said that it failed, or said something that is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an arm said after one turn."""

    metrics: Mapping[str, float]
    outcome: Any = None  # JSON
    """What its work came to; None where nothing is to be compared."""


@dataclass(slots=True)
class ArmProcess:
    """One life of an arm. Use it as a context: it is ended with the block."""

    spec: ArmSpec
    folder: Path
    timeout_seconds: float
    watched: Sequence[str] = ()
    """Environment variables to read from its processes."""
    seen: Seen = field(default_factory=Seen)
    _process: "subprocess.Popen[bytes] | None" = None
    _unread: bytes = b""

    def __enter__(self) -> "ArmProcess":
        self.folder.mkdir(parents=True)
        settings = json.dumps({**self.spec.settings, "folder": str(self.folder)})
        changed = {**os.environ, **self.spec.variables}
        with self._log.open("wb") as errors:
            try:
                self._process = subprocess.Popen(
                    [*self.spec.command, settings],
                    cwd=self.spec.folder,
                    env={name: value for name, value in changed.items() if value is not None},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    # A group of its own, so that a hung arm is killed with what it started.
                    start_new_session=True,
                )
            except OSError as error:
                raise ArmFailedError(f"it cannot be started: {error}") from None
        try:
            self._answer("ready")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Its process id; 0 when it does not run."""
        return 0 if self._process is None else self._process.pid

    @property
    def _log(self) -> Path:
        return self.folder / "arm.log"

    def perform(self, step: str) -> Answer:
        """Has it take one turn.

        Raises:
            ArmFailedError: it did not; its process must not be used any more.
        """
        if self._process is None or self._process.stdin is None:
            raise ArmFailedError("the arm does not run")
        try:
            self._process.stdin.write(f"{step}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise ArmFailedError(self._ending("it ended between turns")) from None
        content = self._answer("done")
        try:
            metrics = {name: float(value) for name, value in content["metrics"].items()}
        except (KeyError, AttributeError, TypeError, ValueError):
            raise ArmFailedError(f"its answer has no metrics: {content}") from None
        return Answer(metrics, content.get("outcome"))

    def end(self) -> None:
        """Closes its input, which asks it to leave; kills it when it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_SECONDS)
        self._finish(process)

    def kill(self) -> None:
        """Kills it and what it started."""
        process, self._process = self._process, None
        if process is not None:
            self._finish(process)

    @staticmethod
    def _finish(process: "subprocess.Popen[bytes]") -> None:
        # Also after it left: what it started may still run.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _answer(self, expected: str) -> Mapping[str, Any]:  # JSON
        line = self._line()
        try:
            content = json.loads(line)
            event = content["event"]
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            raise ArmFailedError(f"it said what is no event: {line[:200]!r}") from None
        if event == "failed":
            raise ArmFailedError(str(content.get("text", "it failed and did not say why")))
        if event != expected:
            raise ArmFailedError(f"it said {event!r} where {expected!r} was expected")
        self._look(content)
        found: Mapping[str, Any] = content
        return found

    def _look(self, content: Mapping[str, Any]) -> None:  # JSON
        roles = {ARM_ROLE: [self.pid], **content.get("roles", {})}
        facts = content.get("facts", {})
        self.seen = Seen(
            {
                role: [_variable(pid, name) for pid in pids for name in self.watched]
                for role, pids in roles.items()
            },
            {name: value for name, value in facts.items() if name != _CODE},
            facts.get(_CODE, {}),
        )

    def _line(self) -> bytes:
        """Returns the next line of its output."""
        if self._process is None or self._process.stdout is None:
            raise ArmFailedError("the arm does not run")
        until = time.monotonic() + self.timeout_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise ArmFailedError(
                        self._ending(f"it did not answer within {self.timeout_seconds:g} s")
                    )
                read = os.read(self._process.stdout.fileno(), _READ_BYTES)
                if not read:
                    raise ArmFailedError(self._ending(self._status()))
                self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _status(self) -> str:
        if self._process is None:
            return "it ended"
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_LEAVE_SECONDS)
            if code < 0:
                return f"it was ended by {signal.Signals(-code).name}"
            return f"it ended with exit code {code}"
        return "it closed its output"

    def _ending(self, what: str) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join((what, *lines[-_LOG_LINES:]))


def _variable(pid: int, name: str) -> str | None:
    """Returns a variable as a process got it; None when it got none."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        content = b""
    if not content:
        # It is gone or has only begun. Never None, which would prove that nothing is set.
        return "(the process cannot be read)"
    for entry in content.split(b"\0"):
        key, _, value = entry.partition(b"=")
        if key == name.encode():
            return value.decode(errors="replace")
    return None
