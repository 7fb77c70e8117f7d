"""What a command writes: results, notes beside them, tables and JSON.

Results go to standard output. Notes of progress go there as well on a terminal, and otherwise to
standard error. Colours and movement are for terminals alone.
"""

import contextlib
import dataclasses
import enum
import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

from coordinator.cli.layout import Prose, laid_out, wrapped
from stagewire.client import Table
from stagewire.errors import ExitCode

_STYLES: Final = {"bold": "1", "bold green": "1;32"}
_WITHOUT_MOVEMENT: Final = ("dumb", "unknown")
_UNREAD: Final = (errno.EPIPE, errno.EIO)
"""How a pipe without a reader and a terminal that was closed answer."""


class Screen:
    """Where a command writes what it found."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self.is_live = (
            self.is_terminal
            and os.environ.get("TERM") not in _WITHOUT_MOVEMENT
            and not os.environ.get("NO_COLOR")
        )
        """Whether text may move and have colours."""
        self._flow: Prose | None = None
        self._is_open = False

    @property
    def can_ask(self) -> bool:
        """Whether a person reads and can answer."""
        return self.is_terminal and sys.stdin is not None and sys.stdin.isatty()

    def line(self, text: str = "", style: str = "") -> None:
        """Writes a paragraph of a result, below what `write` left open."""
        self.end_line()
        self.exact(wrapped(text, width_of(sys.stdout)), style)

    def exact(self, text: str, style: str = "") -> None:
        """Writes a text whose lines are not broken, such as a command to be copied."""
        self.end_line()
        if style and self.is_live:
            text = f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
        _emit_result(f"{text}\n")

    def note(self, text: str) -> None:
        """Writes what is no result: progress, and what to do next. Nobody has to read it."""
        stream = sys.stdout if self.is_terminal else sys.stderr
        if self._is_open:
            _emit(sys.stdout, f"{self._rest()}\n")
        _emit(stream, wrapped(text, width_of(stream)) + "\n")

    def write(self, text: str) -> None:
        """Writes text as it comes, without ending its line."""
        self._is_open = not text.endswith("\n")
        width = width_of(sys.stdout)
        if width is not None:
            self._flow = self._flow or Prose(width)
            text = self._flow.take(text)
        _emit_result(text)

    def end_line(self) -> None:
        """Ends a line that `write` left open."""
        if self._is_open:
            _emit_result(f"{self._rest()}\n")

    @contextlib.contextmanager
    def whole_lines(self) -> Iterator[None]:
        """Ends the line that the block leaves open, however it ends."""
        try:
            yield
        finally:
            if self._is_open:
                _emit(sys.stdout, f"{self._rest()}\n")

    def _rest(self) -> str:
        """Returns what an open line still lacks."""
        self._is_open = False
        return self._flow.end() if self._flow is not None else ""

    def table(self, table: Table, title: str = "") -> None:
        """Writes a table; nothing when it has no rows."""
        if not table.rows:
            return
        if title:
            self.line(f"\n{title}", style="bold")
        head, *rows = laid_out(table, width_of(sys.stdout))
        self.exact(head, style="bold")
        self.exact("\n".join(rows))

    def note_table(self, table: Table, title: str) -> None:
        """Writes a table that is no result."""
        if self.is_terminal:
            self.table(table, title)
        else:
            self.note("\n".join((f"\n{title}", *laid_out(table, width_of(sys.stderr)))))

    def show_cursor(self) -> None:
        """Shows the cursor again, which is hidden while something moves."""
        if self.is_live:
            _emit(sys.stdout, "\x1b[?25h")

    def json(self, value: object) -> None:
        """Writes one JSON document."""
        _emit_result(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def width_of(stream: TextIO) -> int | None:
    """Returns the width that text has to fit; None where it goes to no terminal."""
    # A terminal that nobody gave a size says that it has none.
    return (os.get_terminal_size(stream.fileno()).columns or 80) if stream.isatty() else None


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


def _emit(stream: TextIO, text: str) -> bool:
    """Writes at once, for who reads a pipe takes each line as it comes; says if anybody reads."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.errno not in _UNREAD:
            raise
        # What the interpreter flushes at its end must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def _emit_result(text: str) -> None:
    """Writes to standard output; a command whose result nobody reads has nothing left to do."""
    if not _emit(sys.stdout, text):
        raise SystemExit(ExitCode.FAULT)
