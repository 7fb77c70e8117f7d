"""`coordinator restart`: starts a worker of a running coordinator again."""

from typing import Annotated

import typer

from coordinator.cli import management
from coordinator.cli.options import StateOption, new_app, state_folder
from coordinator.cli.spelling import spelled, state_option
from stagewire.endpoint import read_endpoint

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
    typer.echo(spelled(f"starting {worker}; see `coordinator status{state_option(folder)}`"))
