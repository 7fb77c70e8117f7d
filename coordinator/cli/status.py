"""`coordinator status`: what runs where, and the memory that it takes."""

import json
from typing import Annotated, Final

import typer

from coordinator.cli.options import JsonOption, StateOption, new_app, state_folder
from coordinator.cli.screen import Screen, plain
from coordinator.cli.tables import (
    failed_budget_table,
    legend,
    limit_legend,
    limit_table,
    pipeline_table,
    stage_table,
    worker_prospects,
    worker_table,
)
from stagewire.client import Client, CoordinatorState, connect

app = new_app()
_TICK_SECONDS: Final = 0.25


@app.command()
def status(
    state: StateOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show every change until the coordinator stops.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what runs where, and the memory that it takes."""
    screen = Screen()
    with connect(state_folder(state)) as client:
        if watch:
            _watch(client, screen, is_json=json)
        elif json:
            screen.json(client.placement())
        else:
            show(client.placement(), screen)


def show(state: CoordinatorState, screen: Screen) -> None:
    """Shows one state."""
    screen.line(f"{state.plan_name}: {state.phase.name.lower()}", style="bold")
    for table, explain in (
        (stage_table, legend),
        (worker_table, worker_prospects),
        (pipeline_table, None),
        (limit_table, limit_legend),
    ):
        screen.line()
        screen.table(table(state))
        explanation = explain(state) if explain is not None else ""
        if explanation:
            screen.line(explanation)
    if state.ledger.failed_budgets:
        screen.line()
        screen.line("Budgets below what was measured", style="bold")
        screen.table(failed_budget_table(state))


def _watch(client: Client, screen: Screen, *, is_json: bool) -> None:
    if screen.is_live and not is_json:
        _watch_live(client)
        return
    for state in client.watch():
        if is_json:
            # One document a line: a reader takes each as it comes.
            screen.exact(json.dumps(plain(state), ensure_ascii=False))
        else:
            show(state, screen)


def _watch_live(client: Client) -> None:
    from coordinator.cli.moving import drawn_lines, drawn_state, moving

    shown = drawn_lines([])
    with moving(lambda: shown, _TICK_SECONDS):
        for state in client.watch():
            shown = drawn_state(state)
