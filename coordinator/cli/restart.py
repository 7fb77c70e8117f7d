"""`coordinator restart`: starts a worker of a running coordinator again."""

from typing import Annotated

import typer

from coordinator.cli import management
from coordinator.cli.options import StateOption, new_app, state_folder
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
    management.restart_worker(read_endpoint(state_folder(state)), worker)
    typer.echo(f"starting {worker}; see `coordinator status`")
