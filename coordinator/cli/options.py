"""Options that several commands share, and settings made of them."""

from pathlib import Path
from typing import Annotated

import typer

PlanOption = Annotated[Path, typer.Option("--plan", help="The plan file.", show_default=False)]
StateOption = Annotated[
    Path | None,
    typer.Option("--state", help="State folder; by default the user's own.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Download without asking.")]
FakeOption = Annotated[
    bool, typer.Option("--fake", help="Pretend every stage: no models, no environments.")
]


def _check_size(text: str | None) -> str | None:
    from coordinator.facts.sizes import parse_size

    if text is not None:
        try:
            parse_size(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return text


RamOption = Annotated[
    str | None,
    typer.Option(
        "--ram",
        help="Memory that the plan may use, such as 3GiB; by default what is free.",
        callback=_check_size,
        show_default=False,
    ),
]
PipelinesOption = Annotated[
    list[str] | None,
    typer.Option("--pipeline", help="Pipeline to bring up; may be repeated. By default all."),
]


def new_app() -> typer.Typer:
    """Returns the program of one command."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def quota_bytes(ram: str | None) -> int | None:
    """Returns the bytes of a checked `--ram`."""
    from coordinator.facts.sizes import parse_size

    return None if ram is None else parse_size(ram)


def state_folder(state: Path | None) -> Path:
    """Returns the folder that a person chose, or the user's own."""
    from stagewire.endpoint import default_state_folder

    return (default_state_folder() if state is None else state.expanduser()).absolute()
