"""What moves on a terminal. The one module that imports `rich`, imported when something moves."""

import sys
from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from coordinator.cli.layout import laid_out
from coordinator.cli.screen import width_of
from coordinator.cli.tables import legend, stage_table, worker_table
from stagewire.client import CoordinatorState, Table


def moving(
    draw: Callable[[], RenderableType], tick_seconds: float, *, is_transient: bool = False
) -> Live:
    """Returns the context in which something is drawn again and again."""
    return Live(get_renderable=draw, refresh_per_second=1 / tick_seconds, transient=is_transient)


def drawn_state(state: CoordinatorState) -> RenderableType:
    """Returns the stages and workers of a state."""
    blank = Text()
    return Group(
        drawn_table(stage_table(state)),
        Text(legend(state)),
        blank,
        drawn_table(worker_table(state)),
    )


def drawn_lines(lines: Sequence[str]) -> RenderableType:
    """Returns lines of text."""
    return Text("\n".join(lines))


def drawn_table(table: Table, above: str = "") -> RenderableType:
    """Returns a table, with text above it."""
    head, *rows = laid_out(table, width_of(sys.stdout))
    shown = Text.assemble((head, "bold"), "\n", "\n".join(rows))
    return Group(Text(above), Text(), shown) if above else shown
