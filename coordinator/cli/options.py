"""Options that several commands share, and settings made of them."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer


def _check_plan(path: Path | None) -> Path | None:
    try:
        is_missing = path is not None and not path.exists()
    except OSError as error:
        # Of a folder that may not be entered, or a name that is too long.
        raise typer.BadParameter(f"plan file {path} cannot be read: {error.strerror}") from None
    if is_missing:
        raise typer.BadParameter(f"plan file {path} does not exist")
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name the plan file in it")
    return path


def optional_plan(text: str) -> Any:
    """Returns the option that names a plan file; typer's own type of it is not public."""
    return typer.Option("--plan", help=text, callback=_check_plan, show_default=False)


PlanOption = Annotated[Path, optional_plan("The plan file.")]
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


def _check_address(address: str) -> str:
    if address != ANY_PORT:
        # Of the listener itself, which is the last to check it; it imports gRPC.
        from coordinator.serve.listener import loopback_address
        from stagewire.errors import FieldInvalidError

        try:
            loopback_address(address)
        except FieldInvalidError as error:
            raise typer.BadParameter(error.message) from None
    return address


ANY_PORT: Final = "127.0.0.1:0"
ListenOption = Annotated[
    str,
    typer.Option("--listen", help="Address for clients, on loopback.", callback=_check_address),
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
    from stagewire.endpoint import default_state_folder, without_tilde

    return (default_state_folder() if state is None else without_tilde(state)).absolute()


def own_folder(name: str) -> Path:
    """Makes a folder in the user's own state folder, closed to others like that one.

    Raises:
        OSError: it cannot be made.
    """
    folder = state_folder(None)
    # One by one: `parents` would leave the state folder open to others.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / name).mkdir(mode=0o700, exist_ok=True)
    return folder / name
