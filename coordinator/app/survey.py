"""What `doctor` and `devices` look at: the machine, and the plan if one is named."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import uv

from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.devices.cpu import probe_cpu
from coordinator.devices.doctor import Check, Examination, examine
from coordinator.devices.host import cpu_row
from coordinator.devices.loopback import probe_loopback
from coordinator.devices.memory import probe_memory
from coordinator.devices.rows import CapabilityRow, DeviceRow, Route
from coordinator.devices.storage import probe_shared_memory, probe_storage
from coordinator.plan.schema import Plan

_UV_SECONDS: Final = 20.0


def examine_machine(cache_folder: Path, needed_bytes: int) -> tuple[Check, ...]:
    """Probes the machine and checks it. Blocking."""
    version = sys.version_info
    return tuple(
        examine(
            Examination(
                (version.major, version.minor, version.micro),
                probe_cpu(),
                probe_memory(),
                probe_storage(cache_folder),
                needed_bytes,
                probe_shared_memory(),
                uv_version(),
                probe_loopback(),
            )
        )
    )


def list_devices(
    plan: Plan | None, capabilities: Iterable[CapabilityRow] | None
) -> tuple[DeviceRow, ...]:
    """Returns every device that a probe saw, with the three facts about it. Blocking.

    `plan` gives the routes; `capabilities` are those of a running coordinator.
    """
    return (cpu_row(probe_cpu(), None if plan is None else _routes(plan), capabilities),)


def uv_version() -> str | None:
    """Returns the version of the uv beside this program; None when there is none."""
    try:
        answer = subprocess.run(
            [uv.find_uv_bin(), "--version"],
            capture_output=True,
            text=True,
            timeout=_UV_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.removeprefix("uv").split("(")[0].strip()


def _routes(plan: Plan) -> tuple[Route, ...]:
    rows = expected_rows(plan, checkout_root(), is_fake=False)
    return tuple(
        Route(worker, device, reason)
        for worker, device, reason in dict.fromkeys(
            (row.worker_id, row.device, row.unavailable_reason) for row in rows
        )
    )
