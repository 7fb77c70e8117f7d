"""A coordinator in a process of its own, started as a person starts it."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from stagewire.client import Client, Phase
from stagewire.endpoint import read_endpoint
from stagewire.errors import CoordinatorUnreachableError

_START_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.005
_ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class RunningCoordinator:
    """A coordinator whose plan is up."""

    pid: int
    client: Client
    ready_seconds: float
    """From the start of its process until everything could be used."""
    timeline: Mapping[str, float]
    """Seconds after which the endpoint, each worker and each stage were there."""
    workers: Mapping[int, str]
    """Module of each worker by its process id."""

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        modules: dict[str, list[int]] = {}
        for pid, module in self.workers.items():
            modules.setdefault(module, []).append(pid)
        return {"coordinator": [self.pid], "workers": list(self.workers), **modules}


@contextlib.contextmanager
def running(
    plan: Path, state: Path, *, is_agreed: bool = False, is_fake: bool = False
) -> Iterator[RunningCoordinator]:
    """Starts a coordinator and ends it with the block; its output goes to a file in `state`."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "coordinator.cli.main", "up"]
    command += ["--plan", str(plan), "--state", str(state)]
    command += ["--yes"] * is_agreed + ["--fake"] * is_fake
    log = state / "coordinator.out"
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        with _client(process, state, log, start + _START_SECONDS) as client:
            timeline = _follow(client, start)
            yield RunningCoordinator(
                process.pid, client, timeline["ready"], timeline, _workers(process.pid)
            )
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _client(process: "subprocess.Popen[bytes]", state: Path, log: Path, until: float) -> Client:
    while time.perf_counter() < until:
        try:
            endpoint = read_endpoint(state)
        except CoordinatorUnreachableError:
            if process.poll() is not None:
                break
            time.sleep(_POLL_SECONDS)
            continue
        return Client(endpoint.address, endpoint.token)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    raise RuntimeError("the coordinator did not come up:\n" + "\n".join(lines[-15:]))


def _follow(client: Client, start: float) -> dict[str, float]:
    timeline = {"endpoint": time.perf_counter() - start}
    for state in client.watch(_START_SECONDS):
        now = time.perf_counter() - start
        phases = {f"worker {item.worker_id}": item.phase for item in state.workers}
        phases |= {f"stage {item.stage_id}": item.phase for item in state.stages}
        for name, phase in phases.items():
            if phase is Phase.READY:
                timeline.setdefault(name, now)
        if state.phase is Phase.READY:
            timeline["ready"] = now
            return timeline
        if state.phase is Phase.FAILED:
            break
    raise RuntimeError("the plan did not become ready")


def _workers(pid: int) -> dict[int, str]:
    commands = {child.pid: child.cmdline() for child in psutil.Process(pid).children()}
    return {
        child: command[command.index("-m") + 1]
        for child, command in commands.items()
        if "-m" in command
    }
