"""The row of the host's CPU, from what the probe answered."""

from collections.abc import Iterable

from coordinator.devices.cpu import HostCpu
from coordinator.devices.probing import Unavailable
from coordinator.devices.rows import (
    Answer,
    CapabilityRow,
    DeviceFact,
    DeviceRow,
    Route,
    device_row,
)
from coordinator.facts.ids import DeviceId

CPU = DeviceId("cpu")


def cpu_row(
    cpu: HostCpu | Unavailable,
    routes: Iterable[Route] | None = None,
    capabilities: Iterable[CapabilityRow] | None = None,
) -> DeviceRow:
    """Returns the row of the CPU; see `device_row` for what None means."""
    if isinstance(cpu, Unavailable):
        # A program that runs has a CPU; it only could not be read.
        present = DeviceFact(Answer.UNKNOWN, cpu.detail)
        return device_row(CPU, "unread CPU", present, routes, capabilities)
    cores = f"{cpu.usable_cores} of {cpu.logical_cores} cores"
    if cpu.quota_cores is not None:
        cores += f", quota {cpu.quota_cores:g}"
    detail = ", ".join((cores, *cpu.features))
    return device_row(CPU, cpu.model_name, DeviceFact(Answer.YES, detail), routes, capabilities)
