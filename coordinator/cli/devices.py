"""`coordinator devices`: every device, and whether it is present, reachable and runnable."""

from pathlib import Path
from typing import Annotated

from coordinator.app.survey import list_devices
from coordinator.cli.options import JsonOption, StateOption, new_app, optional_plan, state_folder
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.devices.rows import Answer, CapabilityRow, DeviceFact, DeviceRow
from coordinator.facts.ids import DeviceId, WorkerId
from coordinator.plan.loading import load_plan
from stagewire.client import CoordinatorState, Table, connect
from stagewire.errors import CoordinatorUnreachableError

app = new_app()


@app.command()
def devices(
    plan: Annotated[Path | None, optional_plan("Plan whose workers may reach them.")] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> None:
    """Show every device: whether a probe saw it, a worker reaches it, and something runs on it.

    The three are never the same fact: the last one needs a running coordinator.
    """
    loaded = load_plan(plan).plan if plan is not None else None
    rows = list_devices(loaded, _running(state_folder(state)))
    screen = Screen()
    if json:
        screen.json({"devices": rows})
    else:
        screen.table(_table(rows))


def _running(state: Path) -> list[CapabilityRow] | None:
    """Returns what the attached workers say that they execute; None when no coordinator runs."""
    try:
        with connect(state) as client:
            return _rows(client.placement())
    except CoordinatorUnreachableError:
        return None


def _rows(state: CoordinatorState) -> list[CapabilityRow]:
    return [
        CapabilityRow(
            WorkerId(worker.worker_id),
            row.executor,
            DeviceId(row.device),
            row.formats,
            row.functions,
            row.library_version,
            row.unavailable_reason,
        )
        for worker in state.workers
        for row in worker.capabilities
    ]


def _table(rows: tuple[DeviceRow, ...]) -> Table:
    return Table(
        ("device", "name", "present", "reachable", "runnable"),
        tuple(
            (
                row.device,
                row.name,
                _fact(row.present),
                _fact(row.reachable),
                _runnable(row),
            )
            for row in rows
        ),
    )


def _fact(fact: DeviceFact) -> str:
    return spelled(f"{fact.answer}: {fact.detail}")


def _runnable(row: DeviceRow) -> str:
    """Returns the executors alone of each worker; `--json` has their formats and functions."""
    if row.runnable.answer is not Answer.YES:
        return _fact(row.runnable)
    executors: dict[str, list[str]] = {}
    for item in row.capabilities:
        if not item.unavailable_reason:
            executors.setdefault(item.worker_id, []).append(item.executor)
    return "yes: " + ", ".join(f"{name} ({', '.join(e)})" for name, e in executors.items())
