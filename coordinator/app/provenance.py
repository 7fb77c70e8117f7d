"""Where a record comes from: the program, its checkout, the machine, the environments."""

import datetime
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from coordinator.app.preparation import checkout_root
from coordinator.app.worker_life import WorkerLife
from coordinator.devices.cpu import HostCpu, probe_cpu
from coordinator.devices.memory import HostMemory, probe_memory
from coordinator.facts.ids import WorkerId
from coordinator.plan.loading import LoadedPlan

_LIBRARIES: Final = ("stagewire", "grpcio", "numpy", "protobuf", "pydantic")
_GIT_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, as far as its figures depend on it."""

    system: str
    processor: str
    usable_cores: int | None
    memory_bytes: int | None
    available_bytes: int | None


@dataclass(frozen=True, slots=True)
class WorkerProvenance:
    """The environment of one worker, as the worker itself attested it."""

    python: str
    environment_key: str
    distributions: Mapping[str, str]
    libraries: Mapping[str, str]
    """Version of what stands behind each executor."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a record comes from."""

    began: str
    """Time in UTC."""
    version: str
    python: str
    libraries: Mapping[str, str]
    commit: str | None
    """Commit of the checkout; None outside of one."""
    is_dirty: bool | None
    """Whether the checkout has changes that no commit has."""
    machine: Machine
    plan: str
    plan_file: str
    plan_sha256: str


def gather(loaded: LoadedPlan) -> Provenance:
    """Returns where a record of a plan comes from. Blocking."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain") if commit else None
    return Provenance(
        datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        version("stagewire-coordinator"),
        platform.python_version(),
        {name: version(name) for name in _LIBRARIES},
        commit,
        None if changes is None else bool(changes),
        _machine(),
        loaded.plan.metadata.name,
        loaded.path.name,
        loaded.digest,
    )


def worker_provenance(lives: Mapping[WorkerId, WorkerLife]) -> dict[str, WorkerProvenance]:
    """Returns the environments of the workers that are attached."""
    found = {}
    for worker, life in lives.items():
        attached = life.hosting.attached
        if attached is None:
            continue
        environment = attached.hello.environment
        found[str(worker)] = WorkerProvenance(
            environment.python_version,
            environment.environment_key,
            {item.name: item.version for item in environment.distributions},
            {row.executor: row.library_version for row in attached.rows},
        )
    return found


def _machine() -> Machine:
    cpu, memory = probe_cpu(), probe_memory()
    known_cpu = cpu if isinstance(cpu, HostCpu) else None
    known_memory = memory if isinstance(memory, HostMemory) else None
    return Machine(
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        known_cpu.model_name if known_cpu else "unknown",
        known_cpu.usable_cores if known_cpu else None,
        known_memory.total_bytes if known_memory else None,
        known_memory.available_bytes if known_memory else None,
    )


def _git(*words: str) -> str | None:
    """Returns what git says of the checkout; None where there is no git, or no checkout."""
    root: Path = checkout_root()
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
