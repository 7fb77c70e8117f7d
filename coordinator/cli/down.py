"""`coordinator down`: stops a running coordinator and waits until it is gone."""

from typing import Annotated, Final

import typer

from coordinator.cli import management
from coordinator.cli.options import StateOption, new_app, state_folder
from coordinator.cli.screen import Screen
from coordinator.cli.waiting_linux import wait_for_end
from stagewire.endpoint import Endpoint, read_endpoint
from stagewire.errors import DeadlineExceededError

app = new_app()
_DRAIN_SECONDS: Final = 10.0
_LEAVE_SECONDS: Final = 30.0
"""Time that the workers get to leave, above what their requests get."""


@app.command()
def down(
    state: StateOption = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0, help="Seconds that running requests may still take."),
    ] = _DRAIN_SECONDS,
) -> None:
    """Stop a running coordinator: it drains, stops its workers and ends."""
    folder, screen = state_folder(state), Screen()
    endpoint = read_endpoint(folder)
    try:
        running = management.shutdown(endpoint, timeout)
    except DeadlineExceededError:
        # It does not even answer: what it runs cannot be waited for.
        raise _not_ended(endpoint) from None
    if running:
        screen.note(f"waiting for {running} requests, at most {timeout:g} s")
    if not wait_for_end(endpoint.pid, timeout + _LEAVE_SECONDS):
        raise _not_ended(endpoint)
    screen.line(f"stopped {endpoint.plan}")


def _not_ended(endpoint: Endpoint) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"the coordinator of {endpoint.plan!r}, process {endpoint.pid}, has not ended;"
        f" end it with `kill -9 {endpoint.pid}`, its workers end with it"
    )
