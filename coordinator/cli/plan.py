"""`coordinator plan`: what a plan would become here, without starting anything."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from coordinator.app.designing import design_run
from coordinator.app.dry_run import DryRun, explain
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.cli.options import (
    FakeOption,
    JsonOption,
    PipelinesOption,
    RamOption,
    new_app,
    optional_plan,
    quota_bytes,
    state_folder,
)
from coordinator.cli.screen import Screen
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import load_plan
from stagewire.client import Table
from stagewire.errors import StageError

app = new_app()
_MIB = 1 << 20


@app.command()
def plan(
    plan: Annotated[Path | None, optional_plan("The plan file.")] = None,
    ram: RamOption = None,
    pipeline: PipelinesOption = None,
    fake: FakeOption = False,
    json: JsonOption = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of plans instead.")
    ] = False,
) -> None:
    """Show what a plan would become here, without starting anything.

    Where each stage goes and why, how items travel, and the sum of the memory.
    """
    if schema:
        from coordinator.plan.json_schema import render

        sys.stdout.write(render())
        return
    if plan is None:
        raise typer.BadParameter("name a plan file, or ask for --schema", param_hint="--plan")
    settings = Settings(
        plan,
        state_folder(None),
        default_cache_folder(),
        pipelines=tuple(pipeline or ()),
        quota_bytes=quota_bytes(ram),
        is_fake=fake,
    )
    screen = Screen()
    try:
        run = _explained(settings)
    except StageError as error:
        if json:
            screen.json({"verdict": "refused", "refusal": _refusal(error)})
        raise
    if json:
        screen.json({"verdict": "admitted, subject to proof", "design": run})
    else:
        _show(run, screen)


def _explained(settings: Settings) -> DryRun:
    loaded = load_plan(settings.plan_path)
    return explain(design_run(settings, loaded))


def _refusal(error: StageError) -> dict[str, object]:
    return {
        "reason": error.reason,
        "message": error.message,
        "facts": error.facts,
        "remedies": [*getattr(error, "__notes__", ()), error.recovery],
    }


def _show(run: DryRun, screen: Screen) -> None:
    tightest = min(run.limits, key=lambda item: item.limit_bytes - item.reserved_bytes)
    screen.line(
        f"{run.plan} fits: it takes {_exact(tightest.reserved_bytes)} of"
        f" {_exact(tightest.limit_bytes)} ({tightest.constraint})",
        style="bold green",
    )
    screen.table(_stages(run), "Stages")
    for stage in run.stages:
        for lost in stage.lost:
            screen.line(f"  {stage.stage} not on {lost}")
    for why in dict.fromkeys(stage.cores_reason for stage in run.stages):
        names = [stage.stage for stage in run.stages if stage.cores_reason == why]
        screen.line(f"  cores of {', '.join(names)}: {why}")
    screen.table(_edges(run), "Edges")
    screen.table(_memory(run), "Memory")
    screen.table(_limits(run), "Limits")
    screen.line("\nadmitted, subject to proof", style="bold")
    for proof in run.proofs:
        screen.line(f"  {proof.stage}: {'; '.join(proof.claims)}")


def _stages(run: DryRun) -> Table:
    return Table(
        ("stage", "worker", "device", "cores", "executor", "artifact", "why"),
        tuple(
            (
                stage.stage,
                stage.worker,
                stage.device + (" (fallback)" if stage.is_fallback else ""),
                stage.cores,
                stage.executor,
                stage.artifact or "-",
                stage.reason,
            )
            for stage in run.stages
        ),
    )


def _edges(run: DryRun) -> Table:
    return Table(
        ("pipeline", "from", "to", "items", "largest", "transport"),
        tuple(
            (
                edge.pipeline,
                edge.source,
                edge.target,
                edge.port,
                "no bound" if edge.largest_bytes is None else format_size(edge.largest_bytes),
                edge.transport,
            )
            for edge in run.edges
        ),
    )


def _memory(run: DryRun) -> Table:
    rows = [
        (item.owner, item.lifetime, _exact(item.size_bytes), item.purpose) for item in run.claims
    ]
    rows.append(("loads", "load", _exact(run.loads_bytes), "the largest one; they take turns"))
    total = sum(item.size_bytes for item in run.claims) + run.loads_bytes
    rows.append(("sum", "", _exact(total), ""))
    return Table(("owner", "lifetime", "size", "for"), tuple(rows))


def _limits(run: DryRun) -> Table:
    return Table(
        ("constraint", "limit", "reserved", "left"),
        tuple(
            (
                item.constraint,
                _exact(item.limit_bytes),
                _exact(item.reserved_bytes),
                _exact(item.limit_bytes - item.reserved_bytes),
            )
            for item in run.limits
        ),
    )


def _exact(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:,.1f} MiB"
