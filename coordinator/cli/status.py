"""`coordinator status`: what runs where, and the memory that it takes."""

import contextlib
import json
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live

from coordinator.cli.options import JsonOption, StateOption, new_app, state_folder
from coordinator.cli.screen import Screen, drawn, plain
from coordinator.cli.tables import (
    failed_budget_table,
    limit_table,
    pipeline_table,
    stage_table,
    worker_table,
)
from stagewire.client import Client, CoordinatorState, connect

app = new_app()


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
    for table in (stage_table, worker_table, pipeline_table, limit_table):
        screen.line()
        screen.table(table(state))
    if state.ledger.failed_budgets:
        screen.line()
        screen.line("Budgets below what was measured", style="bold")
        screen.table(failed_budget_table(state))


def _watch(client: Client, screen: Screen, *, is_json: bool) -> None:
    with contextlib.ExitStack() as stack:
        live = None
        if screen.is_live and not is_json:
            live = stack.enter_context(Live(console=screen.console))
        for state in client.watch():
            if is_json:
                # One document a line: a reader takes each as it comes.
                screen.write(json.dumps(plain(state), ensure_ascii=False) + "\n")
            elif live is not None:
                live.update(Group(drawn(stage_table(state)), drawn(worker_table(state))))
            else:
                show(state, screen)
