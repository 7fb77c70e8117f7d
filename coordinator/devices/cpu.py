"""The CPU of the host: its name, the cores that this process may use, and what they can compute."""

import math
from collections.abc import Iterable
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

_FEATURES: Final = {
    "avx2": {"avx2"},
    "avx512": {"avx512f"},
    "vnni": {"avx512_vnni", "avx_vnni", "asimddp"},
    "bf16": {"avx512_bf16", "amx_bf16", "bf16"},
    "amx": {"amx_tile"},
}
"""Our word for a feature, and the kernel's words of which one is enough."""


@dataclass(frozen=True, slots=True)
class HostCpu:
    """The CPU as this process may use it."""

    model_name: str
    logical_cores: int
    """Hardware threads of the machine that are switched on."""
    physical_cores: int | None
    """None where the kernel does not say."""
    affinity_cores: int
    """Hardware threads that this process may run on."""
    quota_cores: float | None
    """Cores' worth of time that control groups allow; None without a quota."""
    features: tuple[str, ...]
    """Of avx2, avx512, vnni, bf16 and amx those that it has."""

    @property
    def usable_cores(self) -> int:
        """Threads that can run at once; at least one."""
        if self.quota_cores is None:
            return self.affinity_cores
        return max(1, min(self.affinity_cores, math.floor(self.quota_cores)))


def probe_cpu(
    root: Path = Path("/"), limit_seconds: float = PROBE_SECONDS
) -> HostCpu | Unavailable:
    """Reads the CPU of the host below a root folder."""
    return run_probe("cpu", lambda: _read_cpu(root), limit_seconds)


def _read_cpu(root: Path) -> HostCpu:
    blocks = [
        _fields(block)
        for block in read_text(root / "proc/cpuinfo").split("\n\n")
        if "processor" in _fields(block)
    ]
    if not blocks:
        raise ProbeError(ProbeFailure.MALFORMED, "cpu: /proc/cpuinfo names no processor")
    first = blocks[0]
    # Every core counts: a machine with unequal cores has only the features that all of them have.
    shared = set.intersection(
        *(set((block.get("flags") or block.get("Features", "")).split()) for block in blocks)
    )
    cores = {(block.get("physical id"), block.get("core id")) for block in blocks}
    return HostCpu(
        first.get("model name") or first.get("Hardware") or "unnamed CPU",
        len(blocks),
        None if any(None in core for core in cores) else len(cores),
        _affinity_cores(root, len(blocks)),
        min(
            (quota for quota in map(_quota_cores, group_folders(root, "cpu")) if quota),
            default=None,
        ),
        tuple(name for name, words in _FEATURES.items() if words & shared),
    )


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _affinity_cores(root: Path, logical_cores: int) -> int:
    """Returns the size of the affinity set; it is read where a test can put another one."""
    for line in read_text(root / "proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            # The kernel lists cores that could be plugged in as well.
            return max(1, min(_list_length(value.strip().split(",")), logical_cores))
    raise ProbeError(ProbeFailure.MALFORMED, "cpu: /proc/self/status has no Cpus_allowed_list")


def _list_length(ranges: Iterable[str]) -> int:
    length = 0
    for item in ranges:
        first, _, last = item.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ProbeError(ProbeFailure.MALFORMED, f"cpu: {item[:40]!r} is not a range of cores")
        length += int(last or first) - int(first) + 1
    return length


def _quota_cores(group: GroupFolder) -> float | None:
    """Returns the cores' worth of time that one group allows."""
    try:
        if group.version == 2:  # noqa: PLR2004
            quota, _, period = read_text(group.path / "cpu.max").strip().partition(" ")
        else:
            quota = read_text(group.path / "cpu.cfs_quota_us").strip()
            period = read_text(group.path / "cpu.cfs_period_us").strip()
    except FileNotFoundError:
        return None
    if quota in ("max", "-1"):
        return None
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        raise ProbeError(
            ProbeFailure.MALFORMED, f"cpu: a quota of {quota[:20]!r} per {period[:20]!r}"
        )
    return int(quota) / int(period)
