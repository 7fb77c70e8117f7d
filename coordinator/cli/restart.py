"""`coordinator restart`: starts a worker of a running coordinator again."""

from typing import Annotated

import typer

from coordinator.cli import management
from coordinator.cli.options import StateOption, new_app, state_folder
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from stagewire.endpoint import read_endpoint, state_option

app = new_app()


@app.command()
def restart(
    worker: Annotated[
        str, typer.Argument(metavar="WORKER", help="Name of the worker in the plan.")
    ],
    state: StateOption = None,
) -> None:
    """Start a worker again that was given up, or at once instead of later."""
    folder = state_folder(state)
    management.restart_worker(read_endpoint(folder), worker)
    status = spelled(f"`coordinator status{state_option(folder)}`")
    Screen().line(f"starting {worker}; see {status}")
