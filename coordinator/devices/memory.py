"""Memory of the host: what is there, what is free, and what control groups allow of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.devices.cgroups import GroupFolder, group_folders
from coordinator.devices.probing import (
    PROBE_SECONDS,
    ProbeError,
    ProbeFailure,
    Unavailable,
    read_text,
    run_probe,
)

_KIB: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of the host as it was at the moment of the probe."""

    total_bytes: int
    available_bytes: int
    """What programs can still take without swapping, control groups not considered."""
    swap_total_bytes: int
    swap_free_bytes: int
    cgroup_limit_bytes: int | None
    """Smallest limit of a control group that holds for this process; None when there is none."""
    cgroup_free_bytes: int | None
    """Least that a group with a limit has left; page cache that can be dropped counts as left."""


def probe_memory(
    root: Path = Path("/"), limit_seconds: float = PROBE_SECONDS
) -> HostMemory | Unavailable:
    """Reads the memory of the host below a root folder."""
    return run_probe("memory", lambda: _read_memory(root), limit_seconds)


def _read_memory(root: Path) -> HostMemory:
    sizes: dict[str, int] = {}
    for line in read_text(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        number, _, unit = value.strip().partition(" ")
        if number.isdigit() and unit in ("kB", ""):
            sizes[name] = int(number) * _KIB
    for name in ("MemTotal", "MemAvailable"):
        if name not in sizes:
            raise ProbeError(ProbeFailure.MALFORMED, f"memory: /proc/meminfo has no {name}")
    total_bytes = sizes["MemTotal"]
    limits: list[tuple[int, int]] = []
    for group in group_folders(root, "memory"):
        limit_bytes = _limit_bytes(group)
        # A limit above the physical memory is how version 1 says that there is none.
        if limit_bytes is not None and limit_bytes < total_bytes:
            limits.append((limit_bytes, max(0, limit_bytes - _held_bytes(group))))
    return HostMemory(
        total_bytes,
        sizes["MemAvailable"],
        sizes.get("SwapTotal", 0),
        sizes.get("SwapFree", 0),
        min((limit for limit, _ in limits), default=None),
        min((free for _, free in limits), default=None),
    )


def _limit_bytes(group: GroupFolder) -> int | None:
    # Above memory.high a group is slowed down until it is of no use: as good as a limit.
    names = ("memory.max", "memory.high") if group.version == 2 else ("memory.limit_in_bytes",)  # noqa: PLR2004
    found = [size for name in names if (size := _number(group.path / name)) is not None]
    return min(found, default=None)


def _held_bytes(group: GroupFolder) -> int:
    """Returns what a group holds and cannot drop."""
    is_version_2 = group.version == 2  # noqa: PLR2004
    usage = _number(group.path / ("memory.current" if is_version_2 else "memory.usage_in_bytes"))
    cache_name = "inactive_file" if is_version_2 else "total_inactive_file"
    cache_bytes = 0
    try:
        for line in read_text(group.path / "memory.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == cache_name and value.isdigit():
                cache_bytes = int(value)
    except FileNotFoundError:
        cache_bytes = 0
    return max(0, (usage or 0) - cache_bytes)


def _number(path: Path) -> int | None:
    """Returns the number in a file; None for the word `max` and where there is no such file."""
    try:
        text = read_text(path).strip()
    except FileNotFoundError:
        return None
    if text == "max":
        return None
    if not text.isdigit():
        raise ProbeError(ProbeFailure.MALFORMED, f"memory: {path.name} says {text[:40]!r}")
    return int(text)
