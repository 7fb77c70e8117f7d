"""The program `coordinator`: finds the command, and turns failures into exit codes.

A command's module is imported when the command is called, so that `--help` costs next to nothing.
"""

import importlib
import os
import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from coordinator.cli.spelling import program
from stagewire.errors import ExitCode

COMMANDS: Final = {
    "demo": "Answer a spoken question aloud, or read an image: the quickest way to see it work.",
    "up": "Bring a plan up and keep it up until it is stopped.",
    "down": "Stop a running coordinator.",
    "run": "Send one request to a running coordinator.",
    "status": "Show what runs where, and the memory that it takes.",
    "restart": "Start a worker again that was given up, or at once instead of later.",
    "plan": "Show what a plan would become here, without starting anything.",
    "devices": "Show every device: present, reachable, runnable.",
    "doctor": "Check this machine, or show where the memory of a running plan is.",
    "accept": "Run a whole plan on its examples, and hold it against what it promises.",
    "artifacts": "Fetch, list and verify models.",
}
"""Every command and its line in the help; each is the module of its name."""


class CommandGroup(TyperGroup):
    """Knows its commands by name before it imports them.

    Typer gives its own contexts and commands no public types, hence Any.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            module = importlib.import_module(f"coordinator.cli.{cmd_name}")
            self.commands[cmd_name] = typer.main.get_command(module.app)
            self.commands[cmd_name].name = cmd_name
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command of a command line, and says what a typo may have meant."""
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands from their names alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_HELP: Final = f"""
Run each stage of a multimodal pipeline on the processor of this machine that suits it.

A first try: {program()} demo. Exit codes: 0 done, 1 fault, 2 refused, 3 missed, 64 wrong usage,
70 internal, 75 held by another, 78 unsafe, 130 interrupted.
"""

app = typer.Typer(
    name="coordinator",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"stagewire {version('stagewire-coordinator')}")
        raise typer.Exit


@app.callback(help=_HELP)
def begin(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Log more, with tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Begins any command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)
    from coordinator.cli.failures import begin_logging

    begin_logging(is_debugging=debug)


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    # Closed by whoever started it: Python has no stream then, and nobody wants to read.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code."""
    command = typer.main.get_command(app)
    try:
        # A command returns its exit code, or nothing when it is done.
        return int(command.main(arguments, prog_name=program(), standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:  # the outermost edge: whatever is left becomes an exit code
        from coordinator.cli import failures

        if isinstance(error, typer.TyperException):
            return failures.show_usage(error)
        return failures.show(error)


if __name__ == "__main__":
    main()
