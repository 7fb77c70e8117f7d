"""Text laid out for a width: prose breaks at words, tables give up columns. Pure."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from stagewire.client import Table

_GAP: Final = "  "
_COMFORTABLE: Final = 24
"""Width below which a column is not narrowed while others may be left out."""
_NARROWEST: Final = 10
_SPARE: Final = ("executor", "kind", "load", "first out", "in", "out", "items")
"""Columns that are left out where there is no room, the first one first."""


def wrapped(text: str, width: int | None) -> str:
    """Returns a text whose long lines are broken between words and keep their indent."""
    if width is None:
        return text
    return "\n".join(
        line if len(line) <= width else "\n".join(_broken(line, width)) for line in text.split("\n")
    )


def laid_out(table: Table, width: int | None = None) -> list[str]:
    """Returns the lines of a table, its header first; without a width every cell is one line."""
    if width is None:
        return str(table).splitlines()
    kept, widths = _fitted(table, width)
    return [
        _GAP.join(text.ljust(size) for text, size in zip(line, widths, strict=True)).rstrip()
        for row in (table.columns, *table.rows)
        for line in _lines([row[index] for index in kept], widths)
    ]


class Prose:
    """Prose that comes in pieces, broken between words; a word waits until it is whole."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._word = ""

    def take(self, piece: str) -> str:
        """Returns what of a piece, and of those before it, can be shown by now."""
        *whole, self._word = re.split(r"(?<=\s)", self._word + piece)
        return "".join(map(self._placed, whole))

    def end(self) -> str:
        """Returns what is left; the next piece begins a line."""
        rest, self._word = self._placed(self._word), ""
        self._column = 0
        return rest

    def _placed(self, word: str) -> str:
        is_over = self._column and self._column + len(word.rstrip()) > self._width
        self._column = len(word) if is_over else self._column + len(word)
        if word.endswith("\n"):
            self._column = 0
        return f"\n{word}" if is_over else word


def _broken(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    # What is longer than a line, such as a path, stays whole: it may be copied.
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _fitted(table: Table, width: int) -> tuple[list[int], list[int]]:
    """Returns the columns that are shown, and their widths."""
    spare = [name for name in _SPARE if name in table.columns]
    for count in range(len(spare) + 1):
        kept = [i for i, name in enumerate(table.columns) if name not in spare[:count]]
        widths = _narrowed(table, kept, width, _COMFORTABLE)
        if _total(widths) <= width:
            return kept, widths
    kept = list(range(len(table.columns)))
    return kept, _narrowed(table, kept, width, _NARROWEST)


def _narrowed(table: Table, kept: Sequence[int], width: int, least: int) -> list[int]:
    """Returns the widths of columns, the widest ones narrowed until all fit or none may be."""
    lines = (table.columns, *table.rows)
    widths = [max(len(line[index]) for line in lines) for index in kept]
    while _total(widths) > width and max(widths) > least:
        widths[widths.index(max(widths))] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _lines(cells: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """Iterates over the lines of one row."""
    parts = [textwrap.wrap(cell, size) for cell, size in zip(cells, widths, strict=True)]
    for number in range(max(1, *map(len, parts))):
        yield [part[number] if number < len(part) else "" for part in parts]
