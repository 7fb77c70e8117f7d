"""The program as a person runs it: a process, its two outputs and its exit code."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from testkit import plans
from testkit.namespaces import unshare

PROGRAM = [sys.executable, "-m", "coordinator.cli.main"]
_OF_A_TERMINAL = ("NO_COLOR", "STAGEWIRE_PROGRAM")
SECONDS = 120
"""A limit, ten times what is usual."""


class Started:
    """A program that runs in the background."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, *texts: str) -> str:
        """Returns the first line that has a text, or one of several."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._find(*texts) or self._has_ended, SECONDS)
        line = self._find(*texts)
        assert found, f"{texts} took too long: {self.output}"
        assert line is not None, f"ended without {texts}: {self.output}"
        return line

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Waits for the end and returns the exit code."""
        code = self.process.wait(SECONDS)
        self._reader.join()
        return code

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def _find(self, *texts: str) -> str | None:
        lines = list(self.lines)
        return next((line for line in lines if any(text in line for text in texts)), None)

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        self.process.stdout.close()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


class Program:
    """Runs `coordinator` with folders of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.temporary = root / "temporary"
        self.temporary.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in _OF_A_TERMINAL},
            "STAGEWIRE_STATE": str(self.state),
            "STAGEWIRE_CACHE": str(root / "cache"),
            "TMPDIR": str(self.temporary),
        }
        self.started: list[Started] = []
        self.terminals: list[Terminal] = []

    def run(
        self, *arguments: object, before: Sequence[str] = (), **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*before, *PROGRAM, *map(str, arguments)],
            env={**self.environment, **environment},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def json(self, *arguments: object) -> Any:
        """Returns the JSON document of a command that ends well."""
        result = self.run(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def run_without_network(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Runs it where not even loopback is up, as in a container that nobody finished."""
        return self.run(*arguments, before=unshare("net"))

    def start(
        self,
        *arguments: object,
        errors: IO[str] | int = subprocess.STDOUT,
        before: Sequence[str] = (),
    ) -> Started:
        started = Started(
            subprocess.Popen(
                [*before, *PROGRAM, *map(str, arguments)],
                env=self.environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        )
        self.started.append(started)
        return started

    def up(self, plan: Path, *arguments: object) -> Started:
        started = self.start("up", "--plan", plan, *arguments)
        started.wait_for("READY")
        return started

    def plan(self, **changes: Any) -> Path:
        """Writes a plan of two fake stages, in this interpreter, on two workers."""
        return write_plan(self.root / "plan.yaml", **changes)

    def close(self) -> None:
        for started in self.started:
            if started.process.poll() is None:
                started.process.kill()
            started.end()
        for terminal in self.terminals:
            terminal.close()


class Terminal:
    """A program on a terminal, where a person reads and types."""

    def __init__(
        self, program: Program, *arguments: object, columns: int = 240, **environment: str
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            env={**program.environment, "TERM": "xterm", **environment},
            cwd=program.root,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self.output = ""
        program.terminals.append(self)

    def wait_for(self, text: str) -> None:
        while text not in self.output:
            assert self._read(), f"ended without {text!r}: {self.output}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Reads to the end and returns the exit code."""
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], SECONDS)
        assert ready, f"nothing came: {self.output}"
        try:
            piece = os.read(self._master, 1 << 16)
        except OSError:
            # How a terminal says that nobody is on its other side any more.
            return False
        self.output += piece.decode(errors="replace")
        return bool(piece)


def write_plan(path: Path, *, script: Sequence[Mapping[str, Any]] = ()) -> Path:
    text = {"inputs": {"x": plans.TEXT}, "outputs": {"y": plans.TEXT}}
    content = plans.plan(
        {
            "one": plans.stage("a", *script),
            "two": plans.stage("b"),
            "echo": plans.stage("b", **text),
        },
        {
            "numbers": plans.pipeline({"x": "one.x"}, {"y": "two.y"}, ("one.y", "two.x")),
            "words": plans.pipeline({"text": "echo.x"}, {"text": "echo.y"}),
        },
        metadata={"name": "fake"},
    )
    path.write_text(json.dumps(content, indent=1))
    return path


def wait_until_gone(processes: list[psutil.Process]) -> None:
    """Fails unless every process ends."""
    _, alive = psutil.wait_procs(processes, timeout=SECONDS / 10)
    assert not alive


def wait_for_children(started: Started, count: int) -> list[psutil.Process]:
    """Returns the children once there are so many."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if len(children := started.children()) >= count:
            return children
    raise AssertionError("the workers were not started")


@pytest.fixture
def program(tmp_path, leak_probe):
    program = Program(tmp_path)
    yield program
    program.close()
