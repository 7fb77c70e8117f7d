"""Standard output: lines, tables and JSON; colours and movement only on a terminal."""

import dataclasses
import enum
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as RichTable

from stagewire.client import Table


class Screen:
    """Where a command writes what it found."""

    def __init__(self) -> None:
        self.console = Console(markup=False, highlight=False, emoji=False)
        self.is_live = (
            self.console.is_terminal
            and not self.console.is_dumb_terminal
            and not os.environ.get("NO_COLOR")
        )
        """Whether text may move and have colours."""
        self._is_open = False

    @property
    def can_ask(self) -> bool:
        """Whether a person reads and can answer."""
        return self.console.is_terminal and sys.stdin is not None and sys.stdin.isatty()

    def line(self, text: str = "", style: str = "") -> None:
        """Writes one line, below what `write` left open."""
        self.end_line()
        self.console.print(text, style=style if self.is_live else "", soft_wrap=True)

    def write(self, text: str) -> None:
        """Writes text as it comes, without ending its line."""
        self._is_open = not text.endswith("\n")
        self.console.print(text, end="", soft_wrap=True)

    def end_line(self) -> None:
        """Ends a line that `write` left open."""
        if self._is_open:
            self._is_open = False
            self.console.print()

    def table(self, table: Table, title: str = "") -> None:
        """Writes a table; nothing when it has no rows."""
        if not table.rows:
            return
        if title:
            self.line(f"\n{title}", style="bold")
        if self.is_live:
            self.console.print(drawn(table))
        else:
            self.line(str(table))

    def json(self, value: object) -> None:
        """Writes one JSON document."""
        sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def drawn(table: Table) -> RenderableType:
    """Returns a table as a terminal shows it."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    return shown


def plain(value: object) -> Any:
    """Returns a value as JSON can hold it, whatever that is (hence Any)."""
    if isinstance(value, enum.Enum):
        # Grades are letters, written as such.
        return value.name if len(value.name) == 1 else value.name.lower()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
