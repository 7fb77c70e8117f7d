"""How long a plan takes to become ready, and what it has to do by then."""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.arms.coordinator import RunningCoordinator
from coordinator.reach.layout import Environment
from coordinator.reach.variables import worker_environment

FACTOR: Final = 1.3
ALLOWANCE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start with warm caches; seconds."""

    ready: float
    timeline: Mapping[str, float]
    interpreters: Mapping[str, float]
    """By worker, measured alone: an interpreter that imports the worker's module and the host."""
    loads: Mapping[str, float]
    """By worker: what its stages say their own loads took."""

    @property
    def work(self) -> float:
        """What the slowest worker has to do."""
        return max(self.interpreters[worker] + self.loads[worker] for worker in self.loads)

    @property
    def limit(self) -> float:
        """Within what it must be ready."""
        return FACTOR * self.work + ALLOWANCE_SECONDS


def describe_start(
    coordinator: RunningCoordinator, environments: Mapping[str, Environment]
) -> Start:
    """Returns what a start took; the coordinator has just become ready."""
    loads = dict.fromkeys(environments, 0.0)
    for stage in coordinator.client.placement().stages:
        loads[stage.worker_id] += stage.load_seconds or 0.0
    return Start(
        coordinator.ready_seconds,
        coordinator.timeline,
        {name: interpreter_seconds(item) for name, item in environments.items()},
        loads,
    )


def interpreter_seconds(environment: Environment) -> float:
    """Returns how long an interpreter needs until it has imported a worker."""
    code = (
        f"import os, stagewire.worker.host, {environment.worker_module}.executors;"
        " os.write(1, b'.')"
    )
    start = time.perf_counter()
    with subprocess.Popen(
        [environment.python, "-I", "-c", code],
        env=worker_environment(1),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        if process.stdout is None or os.read(process.stdout.fileno(), 1) != b".":
            raise RuntimeError(f"{environment.python} cannot import {environment.worker_module}")
        seconds = time.perf_counter() - start
        process.kill()
    return seconds


def environments_of(
    folders: Mapping[str, Path], found: Mapping[Path, Environment | None]
) -> dict[str, Environment]:
    """Returns the environment of each worker.

    Raises:
        RuntimeError: one is not ready, so that the caches are not warm.
    """
    ready: dict[str, Environment] = {}
    for worker, folder in folders.items():
        environment = found[folder]
        if environment is None:
            raise RuntimeError(f"the environment of {worker} changed meanwhile; start again")
        ready[worker] = environment
    return ready
