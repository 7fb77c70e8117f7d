"""In which order people read lines that lie on a page: across, down, and one column after another.

Lines are first gathered into bands, of lines that lie beside each other. Bands that follow each
other and share a gutter, which no line of theirs crosses, are one block of columns: all of its left
part is read before its right part. That holds for running text; where a side has short entries
only, as a table or a form has, its rows are read across.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from worker_cpu.vision.text_box import TextBox

_CORE: Final = 0.25
"""Part of its height that a line keeps on each side of its middle: lines of a bent page touch."""
_LEAST_GUTTER: Final = 0.7
"""Width of a gutter, in heights of a line."""
_LEAST_LINES: Final = 2
_LEAST_LENGTH: Final = 6.0
"""Lines of a column, and their middle length in heights of a line."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line on the page as it would lie if that were straight."""

    index: int
    left: float
    right: float
    middle: float
    height: float

    @property
    def upper(self) -> float:
        return self.middle - _CORE * self.height

    @property
    def lower(self) -> float:
        return self.middle + _CORE * self.height


def reading_order(boxes: Sequence[TextBox]) -> list[int]:
    """Returns the indices of boxes in the order of reading."""
    if not boxes:
        return []
    return [line.index for line in _ordered(_straightened(boxes))]


def _straightened(boxes: Sequence[TextBox]) -> list[_Line]:
    turn = float(np.median([math.atan2(box.along[1], box.along[0]) for box in boxes]))
    across = np.array([math.cos(turn), math.sin(turn)])
    downward = np.array([-across[1], across[0]])
    lines = []
    for index, box in enumerate(boxes):
        width, height = box.width, box.height
        if abs(box.along @ across) < abs(box.along @ downward):
            width, height = height, width
        # The margin of a box is no text.
        width = max(width - height / 2, height / 2)
        x, y = float(box.centre @ across), float(box.centre @ downward)
        lines.append(_Line(index, x - width / 2, x + width / 2, y, height))
    return lines


def _ordered(lines: list[_Line]) -> list[_Line]:
    result: list[_Line] = []
    block: list[_Line] = []
    for band in _bands(lines):
        if block and _gutter([*block, *band]) is None:
            result += _block(block)
            block = []
        block += band
    return result + _block(block)


def _block(block: list[_Line]) -> list[_Line]:
    gutter = _gutter(block)
    if gutter is None:
        return _across(block)
    sides = (
        [line for line in block if line.right <= gutter],
        [line for line in block if line.right > gutter],
    )
    if not all(map(_is_running_text, sides)):
        return _across(block)
    return [line for side in sides for line in _ordered(side)]


def _bands(lines: list[_Line]) -> list[list[_Line]]:
    """Returns groups of lines between which lies free space from edge to edge, top first."""
    bands: list[list[_Line]] = []
    lowest = -math.inf
    for line in sorted(lines, key=lambda line: line.upper):
        if line.upper >= lowest:
            bands.append([])
        bands[-1].append(line)
        lowest = max(lowest, line.lower)
    return bands


def _gutter(lines: list[_Line]) -> float | None:
    """Returns the middle of the widest upright strip without text, or None."""
    least = _LEAST_GUTTER * float(np.median([line.height for line in lines]))
    widest, found = least, None
    reached = math.inf
    for line in sorted(lines, key=lambda line: line.left):
        if line.left - reached >= widest:
            widest, found = line.left - reached, (line.left + reached) / 2
        reached = line.right if reached == math.inf else max(reached, line.right)
    return found


def _is_running_text(lines: list[_Line]) -> bool:
    lengths = [(line.right - line.left) / line.height for line in lines]
    return len(lines) >= _LEAST_LINES and float(np.median(lengths)) >= _LEAST_LENGTH


def _across(lines: list[_Line]) -> list[_Line]:
    """Returns lines from top to bottom, those at one height from left to right."""
    rows: list[list[_Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and line.middle - rows[-1][0].middle < min(line.height, rows[-1][0].height) / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda line: line.left)]
