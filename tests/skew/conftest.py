"""Coordinators, workers and clients, each in an environment of its own."""

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from stagewire.descriptor import DataType
from testkit import plans
from testkit.waiting import until_sync

from .environments import PYTHONS, Shelf, find_python

SECONDS: Final = 300.0
"""A limit, far above what is usual."""
OTHER_END: Final = {"oldest": "newest", "newest": "oldest"}
_STRICT: Final = ("-I", "-W", "error")
"""What warns now is what fails in a version to come."""
_MATRIX: Final = {"type": "", "shape": ["rows<=32", "columns<=32"], "stream": False}
_LARGE: Final = {"x": {"type": "float32", "shape": ["n<=2097152"], "stream": True}}
_EXCHANGE: Final = Path(__file__).with_name("exchange.py")


@pytest.fixture(scope="session")
def python_of(tmp_path_factory, pytestconfig) -> Callable[[str], Path]:
    """Returns the interpreter of an environment, such as "oldest-sdk", made when first wanted."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = base / "stagewire-tests" / "skew"
    cache.mkdir(parents=True, exist_ok=True)
    shelf = Shelf(tmp_path_factory.mktemp("skew"), cache)
    best = PYTHONS["oldest-sdk"][0]
    if not (found := find_python(PYTHONS["oldest-sdk"])).version.startswith(f"{best}."):
        capturing = pytestconfig.pluginmanager.getplugin("capturemanager")
        with capturing.global_and_fixture_disabled():
            line = f"skew: no Python {best} here; the oldest workers run on {found.version}"
            print(line, file=sys.stderr)
    return functools.cache(shelf.make)


@dataclass
class Ends:
    """Which end of what is allowed each side has, and a folder of a coordinator."""

    folder: Path
    worker: str
    coordinator: str
    python_of: Callable[[str], Path]

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def worker_python(self, end: str) -> Path:
        return self.python_of(f"{end}-sdk")

    @property
    def coordinator_python(self) -> Path:
        return self.python_of(f"{self.coordinator}-coordinator")

    def command(self, *arguments: object) -> list[str]:
        program = ["-m", "coordinator.cli.main", *map(str, arguments)]
        return [str(self.coordinator_python), *_STRICT, *program]

    def ask(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Runs a command of this coordinator's version to its end."""
        return subprocess.run(
            self.command(*arguments, "--state", self.state),
            cwd=self.folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def exchange(self, python: Path) -> dict[str, Any]:
        """Has a client of an environment send and receive; returns what it saw."""
        done = subprocess.run(
            [str(python), *_STRICT, str(_EXCHANGE), str(self.state)],
            cwd=self.folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextlib.contextmanager
    def up(self, plan: plans.Plan) -> Iterator[None]:
        """Holds a coordinator up, as a process of its own, around the block."""
        path, output = plans.write(self.folder, plan), self.folder / "output"
        with output.open("w") as stream:
            process = subprocess.Popen(
                self.command("up", "--plan", path, "--state", self.state),
                cwd=self.folder,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        try:
            until_sync(lambda: "READY" in output.read_text() or process.poll() is not None, SECONDS)
            assert process.poll() is None, output.read_text()
            workers = psutil.Process(process.pid).children(recursive=True)
            yield
            assert self.ask("down").returncode == 0
            assert process.wait(SECONDS) == 0, output.read_text()
        finally:
            process.kill()
            process.wait()
        _, alive = psutil.wait_procs(workers, timeout=SECONDS / 10)
        assert not alive

    @property
    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        return kept | {
            "STAGEWIRE_CACHE": str(self.folder / "cache"),
            "STAGEWIRE_STATE": str(self.folder / "state"),
        }


def plan_of(workers: dict[str, Path]) -> plans.Plan:
    """A plan of two fake workers: one of every element type, and a large tensor across both."""
    types = {item.spelling: {**_MATRIX, "type": item.spelling} for item in DataType}
    single = {name: {**_MATRIX, "type": name, "shape": []} for name in ("utf8", "bytes")}
    one, other = workers
    plan = plans.plan(
        {
            "types": plans.stage(one, inputs=types, outputs=types),
            "single": plans.stage(one, inputs=single, outputs=single),
            "there": plans.stage(one, inputs=_LARGE, outputs=_LARGE),
            "back": plans.stage(other, inputs=_LARGE, outputs=_LARGE),
        },
        {
            "types": plans.pipeline(*[{name: f"types.{name}" for name in types}] * 2),
            "single": plans.pipeline(*[{name: f"single.{name}" for name in single}] * 2),
            "across": plans.pipeline({"x": "there.x"}, {"x": "back.x"}, ("there.x", "back.x")),
        },
    )
    for name, path in workers.items():
        plan["workers"][name]["interpreter"] = {"linux": str(path)}
    return plan


@pytest.fixture(
    scope="module",
    params=[(worker, coordinator) for worker in OTHER_END for coordinator in OTHER_END],
    ids=lambda ends: f"{ends[0]}_worker-{ends[1]}_coordinator",
)
def ends(request, tmp_path_factory, python_of) -> Ends:
    """Every pair of a worker and a coordinator."""
    return Ends(tmp_path_factory.mktemp("ends"), *request.param, python_of)
