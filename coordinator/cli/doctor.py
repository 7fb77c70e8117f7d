"""`coordinator doctor`: checks this machine, or shows where the memory of a running plan is."""

from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator.app.designing import design_run
from coordinator.app.preparation import Preparation
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.app.survey import examine_machine
from coordinator.cli.options import (
    JsonOption,
    StateOption,
    new_app,
    optional_plan,
    state_folder,
)
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.devices.doctor import Check, CheckState
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import load_plan
from stagewire.client import Table
from stagewire.errors import ExitCode, StageError

app = new_app()


_LARGEST: Final = 5
"""Mappings of each process that are shown unless another number is asked for."""


@app.command()
def doctor(
    plan: Annotated[Path | None, optional_plan("Also check this plan on it.")] = None,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Show instead where the memory of a running plan is."),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=0,
            help=f"With --memory: the largest mappings of each process; by default {_LARGEST}.",
            show_default=False,
        ),
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Check this machine, and say what to change. Ends with 2 when a check fails.

    With --memory: what the processes of a running coordinator occupy, and what of it is explained.
    """
    if memory:
        if plan is not None:
            raise typer.BadParameter("a running plan is known; leave it out", param_hint="--plan")
        return _show_memory(state_folder(state), _LARGEST if top is None else top, is_json=json)
    for option, is_given in {"--state": state is not None, "--top": top is not None}.items():
        if is_given:
            raise typer.BadParameter("goes with --memory alone", param_hint=option)
    needed_bytes, planned = (0, None) if plan is None else _check_plan(plan)
    checks = examine_machine(default_cache_folder(), needed_bytes)
    if planned is not None:
        checks = (*checks, planned)
    is_well = all(check.state is not CheckState.FAIL for check in checks)
    screen = Screen()
    if json:
        screen.json({"is_well": is_well, "checks": checks})
    else:
        screen.table(Table(("state", "check", "found", "what to change"), (*map(_row, checks),)))
        for check in checks:
            if "\n" in check.found:
                screen.line(f"\n{check.name}: {spelled(check.found)}")
    return ExitCode.OK if is_well else ExitCode.REFUSED


def _show_memory(folder: Path, largest: int, *, is_json: bool) -> int:
    from coordinator.app.memory_report import read_memory
    from coordinator.cli import management, memory
    from stagewire.endpoint import read_endpoint

    endpoint, screen = read_endpoint(folder), Screen()
    report = read_memory(management.processes(endpoint))
    if is_json:
        screen.json({"plan": endpoint.plan, **memory.as_json(report, largest)})
    else:
        memory.show_memory(report, screen, largest)
    return memory.exit_code(report)


def _row(check: Check) -> tuple[str, str, str, str]:
    first, *more = check.found.splitlines()
    found = f"{first} (all of it below)" if more else first
    return check.state.value, check.name, found, spelled(check.remedy) or "-"


def _check_plan(path: Path) -> tuple[int, Check]:
    """Returns the bytes that a plan still has to fetch, and whether it fits."""
    settings = Settings(path, state_folder(None), default_cache_folder())
    try:
        loaded = load_plan(path)
        design = design_run(settings, loaded)
        downloads = Preparation(settings, loaded, design, lambda _, __: None).downloads()
    except StageError as error:
        found = "\n".join((f"{error.reason}: {error.message}", *getattr(error, "__notes__", ())))
        return 0, Check("plan", CheckState.FAIL, found, error.recovery)
    needed_bytes = sum(item.size_bytes for item in downloads)
    found = f"{loaded.plan.metadata.name} fits"
    if needed_bytes:
        found += f"; {format_size(needed_bytes)} to be downloaded once"
    return needed_bytes, Check("plan", CheckState.OK, found)
