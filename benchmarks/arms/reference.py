"""The reference program in its own environment, loaded once."""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from uv import find_uv_bin

from coordinator.reach.variables import worker_environment

PROJECT: Final = Path(__file__).resolve().parents[1] / "reference"
_MARKER: Final = "stagewire-benchmark"
_SAID: Final = (
    "The reference program needs an environment with piper-tts (GPL-3.0-or-later), about 250 MB"
    " of libraries. Build it with --yes."
)


class ReferenceMissingError(Exception):
    """The environment of the reference is not there and may not be built."""


def ensure_environment(cache: Path, worker_python: Path, *, is_agreed: bool) -> Path:
    """Returns the interpreter of the reference, of the same Python as the workers' own.

    Raises:
        ReferenceMissingError: it has to be built, which nobody agreed to.
    """
    python_version = _output(
        [worker_python, "-I", "-c", "import platform; print(platform.python_version())"]
    )
    lock = (PROJECT / "uv.lock").read_bytes()
    key = hashlib.sha256(lock + python_version.encode()).hexdigest()[:20]
    folder = cache / "benchmarks" / f"reference-{key}"
    python = folder / "bin" / "python"
    if (folder / _MARKER).exists():
        return python
    if not is_agreed:
        raise ReferenceMissingError(_SAID)
    subprocess.run(
        [
            *(find_uv_bin(), "sync", "--quiet", "--locked", "--no-dev", "--project", str(PROJECT)),
            *("--python", python_version),
        ],
        env=os.environ | {"UV_PROJECT_ENVIRONMENT": str(folder)},
        check=True,
    )
    (folder / _MARKER).write_text(python_version, encoding="utf-8")
    return python


class Reference:
    """A reference program that has loaded everything and waits."""

    def __init__(self, python: Path, settings: Mapping[str, Any], log: Path) -> None:  # JSON
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-I", PROJECT / "voice_reference.py", json.dumps(settings)],
                env=worker_environment(1) | {"HF_HUB_OFFLINE": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.loaded = self._answer()
        """What it said of its load."""

    def __enter__(self) -> "Reference":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Its libraries' threads would outlive the end of its input.
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def run(self, question: Path) -> Mapping[str, Any]:  # JSON
        """Answers a question once."""
        return self._ask(f"run {question}")

    def say(self, path: Path, text: str) -> None:
        """Writes a text as a wav file."""
        self._ask(f"say {path} {text}")

    def _ask(self, line: str) -> Mapping[str, Any]:  # JSON
        pipe = self._process.stdin
        if pipe is None:
            raise RuntimeError("the reference has no standard input")
        pipe.write(f"{line}\n")
        pipe.flush()
        return self._answer()

    def _answer(self) -> Mapping[str, Any]:  # JSON
        pipe = self._process.stdout
        line = pipe.readline() if pipe is not None else ""
        if not line:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise RuntimeError("the reference ended:\n" + "\n".join(lines[-15:]))
        answer: Mapping[str, Any] = json.loads(line)
        return answer


def _output(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
