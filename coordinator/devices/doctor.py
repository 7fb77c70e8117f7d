"""The checks of `coordinator doctor`: values come in, findings with remedies go out. Pure."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.devices.cpu import HostCpu
from coordinator.devices.memory import HostMemory
from coordinator.devices.probing import Unavailable
from coordinator.devices.storage import Storage
from coordinator.facts.sizes import format_size

OLDEST_PYTHON: Final = (3, 11)
FIRST_UNTRIED_PYTHON: Final = (3, 15)
ADVISED_CORES: Final = 2
LOW_AVAILABLE_BYTES: Final = 1 << 30
LOW_SHARED_MEMORY_BYTES: Final = 64 << 20


class CheckState(enum.StrEnum):
    """Outcome of one check."""

    OK = "ok"
    WARN = "warn"
    """It runs, but not as it could."""
    FAIL = "fail"
    """Something does not run until the remedy is applied."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check, what it found, and what to change."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""
    """Empty when there is nothing to change."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that the checks look at."""

    python_version: tuple[int, int, int]
    cpu: HostCpu | Unavailable
    memory: HostMemory | Unavailable
    storage: Storage | Unavailable
    """Room for artifacts and environments."""
    needed_storage_bytes: int
    """What is still to be fetched."""
    shared_memory: Storage | Unavailable
    uv_version: str | None
    """None when uv was not found."""
    loopback: Unavailable | None
    """Why this machine cannot be reached from itself; None when it can."""


def examine(examination: Examination) -> Sequence[Check]:
    """Returns every check, in the order to read them in."""
    return (
        _check_python(examination.python_version),
        _check_cores(examination.cpu),
        _check_memory(examination.memory),
        _check_cgroup(examination.memory),
        _check_storage(examination.storage, examination.needed_storage_bytes),
        _check_uv(examination.uv_version),
        _check_shared_memory(examination.shared_memory),
        check_loopback(examination.loopback),
    )


def check_loopback(failure: Unavailable | None) -> Check:
    """Returns the check without which nothing can be brought up."""
    if failure is None:
        return Check("loopback", CheckState.OK, "answers")
    found = f"loopback is down, over which all processes talk: {failure.detail}"
    return Check("loopback", CheckState.FAIL, found, "bring it up with `ip link set lo up`")


def _check_python(version: tuple[int, int, int]) -> Check:
    found = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        return Check("python", CheckState.FAIL, found, "use Python 3.11 to 3.14")
    if version[:2] >= FIRST_UNTRIED_PYTHON:
        return Check("python", CheckState.WARN, found, "not tried yet; use Python 3.11 to 3.14")
    return Check("python", CheckState.OK, found)


def _check_cores(cpu: HostCpu | Unavailable) -> Check:
    if isinstance(cpu, Unavailable):
        return _unread("cores", cpu)
    found = f"{cpu.usable_cores} usable of {cpu.logical_cores}, {cpu.model_name}"
    if cpu.usable_cores < ADVISED_CORES:
        remedy = f"allow {ADVISED_CORES} cores: stages take turns on one"
        return Check("cores", CheckState.WARN, found, remedy)
    return Check("cores", CheckState.OK, found)


def _check_memory(memory: HostMemory | Unavailable) -> Check:
    if isinstance(memory, Unavailable):
        return _unread("memory", memory, "say what a plan may use with --ram")
    found = f"{format_size(memory.available_bytes)} free of {format_size(memory.total_bytes)}"
    if memory.swap_total_bytes:
        swap = f"{format_size(memory.swap_free_bytes)} of {format_size(memory.swap_total_bytes)}"
        found += f", swap {swap}"
    if memory.available_bytes < LOW_AVAILABLE_BYTES:
        remedy = f"close programs until {format_size(LOW_AVAILABLE_BYTES)} are free"
        return Check("memory", CheckState.WARN, found, remedy)
    return Check("memory", CheckState.OK, found)


def _check_cgroup(memory: HostMemory | Unavailable) -> Check:
    if isinstance(memory, Unavailable):
        return _unread("cgroup", memory)
    limit_bytes, free_bytes = memory.cgroup_limit_bytes, memory.cgroup_free_bytes
    if limit_bytes is None or free_bytes is None:
        return Check("cgroup", CheckState.OK, "no memory limit")
    found = f"{format_size(free_bytes)} free of a limit of {format_size(limit_bytes)}"
    if free_bytes < LOW_AVAILABLE_BYTES:
        remedy = "raise the memory limit of the container or cgroup"
        return Check("cgroup", CheckState.WARN, found, remedy)
    return Check("cgroup", CheckState.OK, found)


def _check_storage(storage: Storage | Unavailable, needed_bytes: int) -> Check:
    if isinstance(storage, Unavailable):
        return _unread("disk", storage)
    found = f"{format_size(storage.free_bytes)} free at {storage.path}"
    if storage.free_bytes < needed_bytes:
        missing = format_size(needed_bytes - storage.free_bytes)
        remedy = f"free {missing} there, or name another folder with STAGEWIRE_CACHE"
        return Check("disk", CheckState.FAIL, found, remedy)
    return Check("disk", CheckState.OK, found)


def _check_uv(version: str | None) -> Check:
    if version is None:
        return Check("uv", CheckState.FAIL, "not found", "install it with `pip install uv`")
    return Check("uv", CheckState.OK, version)


def _check_shared_memory(shared_memory: Storage | Unavailable) -> Check:
    if isinstance(shared_memory, Unavailable):
        return _unread("shm", shared_memory, "mount a tmpfs at /dev/shm")
    found = f"{format_size(shared_memory.free_bytes)} free"
    if shared_memory.free_bytes < LOW_SHARED_MEMORY_BYTES:
        remedy = f"give /dev/shm {format_size(LOW_SHARED_MEMORY_BYTES)} or more"
        return Check("shm", CheckState.WARN, found, remedy)
    return Check("shm", CheckState.OK, found)


def _unread(name: str, found: Unavailable, remedy: str = "make it readable") -> Check:
    return Check(name, CheckState.WARN, f"{found.failure}: {found.detail}", remedy)
