"""A program of two commands, as lean as Typer allows: the floor for `coordinator --help`."""

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def first() -> None:
    """Do one thing."""


@app.command()
def second() -> None:
    """Do another thing."""


if __name__ == "__main__":
    app()
