"""A coordinator as a process of its own, for tests that kill it.

Brings up the plan in its folder, with the time limits beside it, says so with one line and runs
until it is asked to stop.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from coordinator.app.settings import Timing
from stagewire.client import Client, connect
from stagewire.endpoint import read_endpoint
from stagewire.errors import StageError
from testkit import calls, plans
from testkit.running import QUICK, make

_SUPPORT: Final = Path(__file__).resolve().parents[1]
_REPOSITORY: Final = _SUPPORT.parents[1]
_TIMING: Final = "timing.json"


@dataclass
class Program:
    """The process, its folder, and what it says."""

    folder: Path
    process: "subprocess.Popen[str]"

    def wait_until_up(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "up\n", line

    def client(self) -> Client:
        return connect(self.folder / "state")

    def stop(self) -> None:
        """Asks it to stop, as `coordinator down` does."""
        endpoint = read_endpoint(self.folder / "state")
        calls.unary(
            endpoint.management_address,
            "/stagewire.v1.ManagementService/Shutdown",
            token=endpoint.management_token,
        )

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def program(
    folder: Path, plan: plans.Plan, *, timing: Timing = QUICK, **variables: str
) -> Iterator[Program]:
    """Starts a coordinator of a plan; it is killed at the end of the block if it still runs.

    `variables` are added to its environment.
    """
    plans.write(folder, plan)
    (folder / _TIMING).write_text(json.dumps(asdict(timing)))
    with (folder / "program.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _starting_code(), str(folder)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **variables},
        )
    try:
        yield Program(folder, process)
    finally:
        process.kill()
        process.communicate()


def _starting_code() -> str:
    paths = [str(_SUPPORT), str(_REPOSITORY)]
    return f"import sys; sys.path[:0] = {paths!r}; from testkit.program import main; main()"


def main() -> None:
    folder = Path(sys.argv[1])
    content: Any = json.loads((folder / "plan.yaml").read_text())
    timing = Timing(**json.loads((folder / _TIMING).read_text()))

    async def serve() -> None:
        coordinator = make(folder, content, timing=timing)
        async with coordinator.running():
            print("up", flush=True)
            await coordinator.wait_for_stop()

    try:
        asyncio.run(serve())
    except StageError as error:
        print(error.reason, flush=True)
        raise SystemExit(error.exit_code) from None
