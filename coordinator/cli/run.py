"""`coordinator run`: sends one request to a running coordinator."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.options import JsonOption, StateOption, new_app, state_folder
from coordinator.cli.outputs import Outputs
from coordinator.cli.screen import Screen
from coordinator.cli.tables import request_table, seconds
from coordinator.cli.values import pairs, read_inputs
from coordinator.plan.pipelines import require_pipelines
from stagewire.client import Client, CoordinatorState, PipelineState, Receipt, connect

app = new_app()


@app.command()
def run(
    pipeline: Annotated[str, typer.Option("--pipeline", help="Pipeline to run.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help="port=VALUE: @FILE (a recording, an image, .txt, .npy), text:WORDS, or a number.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            help="port=FILE (.wav, .npy, .txt); an output without a file is printed.",
        ),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option("--rate", min=1, help="Samples a second of WAV files that are written."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.001, help="Seconds for the request.")
    ] = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> None:
    """Send one request to a running coordinator, and show its receipt.

    A recording fills the input `rate` as well. Texts are printed as they come.
    """
    screen = Screen()
    given = pairs(inputs or (), "--input")
    targets = {port: Path(name) for port, name in pairs(outputs or (), "--output").items()}
    taken = Outputs(screen, targets, rate, is_quiet=json)
    with connect(state_folder(state)) as client:
        found = _pipeline(client.placement(), pipeline)
        taken.check(port.name for port in found.outputs)
        values = read_inputs(given, found.inputs)
        with screen.whole_lines(), client.infer(pipeline, values, timeout=timeout) as call:
            for output in call:
                taken.take(output)
            receipt = call.receipt
        written = taken.finish()
        if json:
            screen.json({"outputs": written, "receipt": receipt})
        else:
            show_receipt(receipt, client, screen)


def show_receipt(receipt: Receipt, client: Client, screen: Screen) -> None:
    """Shows what a request took."""
    screen.table(request_table(receipt, client.placement()), f"Request {receipt.request_id}")
    screen.table(receipt.hop_table(), "Hops")
    screen.line(
        f"total {seconds(receipt.total_seconds)}, first output"
        f" {seconds(receipt.first_output_seconds)}"
    )


def _pipeline(state: CoordinatorState, name: str) -> PipelineState:
    known = {item.pipeline: item for item in state.pipelines}
    require_pipelines([name], known)
    return known[name]
