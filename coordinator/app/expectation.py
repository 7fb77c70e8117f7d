"""What workers are expected to execute, before they are started.

A worker's project declares it in its pyproject.toml, so that a plan can be refused before anything
loads; the worker itself has the last word when it attaches.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomllib

from coordinator.devices.rows import CapabilityRow
from coordinator.facts.ids import DeviceId, WorkerId
from coordinator.plan.schema import Plan
from stagewire.errors import EnvironmentBuildError, PlanInvalidError


def expected_rows(plan: Plan, root: Path, *, is_fake: bool) -> tuple[CapabilityRow, ...]:
    """Returns what each worker of a plan is expected to execute.

    Raises:
        EnvironmentBuildError: a worker's project is missing or cannot be read.
        PlanInvalidError: a worker is of another kind than its project.
    """
    rows: list[CapabilityRow] = []
    for name, worker in plan.workers.items():
        worker_id = WorkerId(name)
        if worker.environment is None or is_fake:
            rows += _whatever_is_asked(plan, worker_id)
        else:
            rows += _declared(worker_id, worker.kind, root / worker.environment)
    return tuple(rows)


def _declared(worker_id: WorkerId, kind: str, folder: Path) -> Iterable[CapabilityRow]:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentBuildError(
            f"the project of worker {worker_id!r} cannot be read: {folder}", worker=worker_id
        ) from error
    name = str(project.get("project", {}).get("name", ""))
    if name != f"worker-{kind}":
        raise PlanInvalidError(
            f"workers.{worker_id}.kind: {kind} is not what {folder.name} holds, which is {name};"
            f" write {name.removeprefix('worker-')}"
        )
    # TOML values are checked by use, hence Any.
    declared: list[dict[str, Any]] = (
        project.get("tool", {}).get("stagewire", {}).get("executes", [])
    )
    for entry in declared:
        yield CapabilityRow(
            worker_id,
            entry["executor"],
            DeviceId(entry["device"]),
            formats=tuple(entry.get("formats", ())),
            functions=tuple(entry.get("functions", ())),
        )


def _whatever_is_asked(plan: Plan, worker_id: WorkerId) -> Iterable[CapabilityRow]:
    """A foreign interpreter is asked when it attaches; until then the plan's word holds."""
    stages = [stage for stage in plan.stages.values() if worker_id in stage.workers]
    for executor in dict.fromkeys(stage.executor for stage in stages):
        own = [stage for stage in stages if stage.executor == executor]
        yield CapabilityRow(
            worker_id,
            executor,
            DeviceId("cpu"),
            formats=tuple(
                dict.fromkeys(
                    plan.artifacts[name].format for stage in own for name in stage.artifacts
                )
            ),
            functions=tuple(dict.fromkeys(stage.function for stage in own if stage.function)),
        )
