"""`coordinator doctor`: checks this machine and says what to change."""

from pathlib import Path
from typing import Annotated

from coordinator.app.coordinator import design_run
from coordinator.app.preparation import Preparation
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.app.survey import examine_machine
from coordinator.cli.options import JsonOption, new_app, optional_plan, state_folder
from coordinator.cli.pipelines import naming_what_fits
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.devices.doctor import Check, CheckState
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import load_plan
from stagewire.client import Table
from stagewire.errors import ExitCode, StageError

app = new_app()


@app.command()
def doctor(
    plan: Annotated[Path | None, optional_plan("Also check this plan on it.")] = None,
    json: JsonOption = False,
) -> int:
    """Check this machine, and say what to change. Ends with 2 when a check fails."""
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


def _row(check: Check) -> tuple[str, str, str, str]:
    first, *more = check.found.splitlines()
    found = f"{first} (all of it below)" if more else first
    return check.state.value, check.name, found, spelled(check.remedy) or "-"


def _check_plan(path: Path) -> tuple[int, Check]:
    """Returns the bytes that a plan still has to fetch, and whether it fits."""
    settings = Settings(path, state_folder(None), default_cache_folder())
    try:
        loaded = load_plan(path)
        with naming_what_fits(settings, loaded):
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
