"""What a running coordinator and its workers show of their settings."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import psutil

from benchmarks.arms.coordinator import RunningCoordinator

_THREADS: Final = "OMP_NUM_THREADS"
"""Variable in which the starter of a worker passes on the largest thread count of its stages."""


def placement_facts(running: RunningCoordinator) -> dict[str, Any]:  # JSON
    """Returns facts that show fields of the plan: from GetPlacement and from the processes."""
    state = running.client.placement()
    kinds = {item.worker_id: item.kind for item in state.workers}
    threads = {module: _threads(running, module) for module in running.workers.values()}
    return {
        "stages": {
            item.stage_id: {
                "worker": item.worker_id,
                "device": item.device,
                "executor": item.executor,
                "reserved_bytes": item.reserved_bytes,
                "threads": _of_kind(threads, kinds.get(item.worker_id, "")),
            }
            for item in state.stages
        },
        "workers": {
            item.worker_id: {"kind": item.kind, "reserved_bytes": item.reserved_bytes}
            for item in state.workers
        },
    }


def own_worker_code() -> dict[str, str]:
    """Returns where fake workers, which this interpreter runs in isolation, take it from."""
    return {"stagewire of workers": _stagewire(sys.executable)}


def _stagewire(python: str) -> str:
    code = "import stagewire.errors; print(stagewire.errors.__file__)"
    command = [python, "-I", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _threads(running: RunningCoordinator, module: str) -> str:
    """Returns the setting of every worker of a module: ids of workers are in no process."""
    pids = sorted(pid for pid, of in running.workers.items() if of == module)
    return ", ".join(psutil.Process(pid).environ().get(_THREADS, "unset") for pid in pids)


def _of_kind(threads: Mapping[str, str], kind: str) -> str | None:
    return next((value for module, value in threads.items() if module.endswith(kind)), None)
