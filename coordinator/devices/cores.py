"""The hardware threads that this process may use, and which of them share a physical core."""

from pathlib import Path

from coordinator.devices.cpu import HostCpu, probe_cpu
from coordinator.devices.probing import (
    PROBE_SECONDS,
    ProbeError,
    ProbeFailure,
    Unavailable,
    read_text,
    run_probe,
)
from coordinator.facts.cores import HostCores, parse_cores


def probe_cores(
    root: Path = Path("/"), limit_seconds: float = PROBE_SECONDS
) -> HostCores | Unavailable:
    """Reads the cores of the host below a root folder."""
    cpu = probe_cpu(root, limit_seconds)
    if isinstance(cpu, Unavailable):
        return cpu
    return run_probe("cores", lambda: _read_cores(root, cpu), limit_seconds)


def _read_cores(root: Path, cpu: HostCpu) -> HostCores:
    allowed = _allowed(root)
    groups: dict[object, list[int]] = {}
    for block in read_text(root / "proc/cpuinfo").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        number = fields.get("processor", "")
        # The kernel allows cores as well that could be plugged in; here are those that are there.
        if number.isdecimal() and int(number) in allowed:
            place = fields.get("physical id"), fields.get("core id")
            groups.setdefault(number if None in place else place, []).append(int(number))
    if not groups:
        raise ProbeError(ProbeFailure.MALFORMED, "cores: none of /proc/cpuinfo may be used")
    return HostCores(
        tuple(sorted(tuple(sorted(group)) for group in groups.values())), cpu.quota_cores
    )


def _allowed(root: Path) -> frozenset[int]:
    for line in read_text(root / "proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            try:
                return frozenset(parse_cores(value))
            except ValueError as error:
                raise ProbeError(ProbeFailure.MALFORMED, f"cores: {error}") from None
    raise ProbeError(ProbeFailure.MALFORMED, "cores: /proc/self/status has no Cpus_allowed_list")
