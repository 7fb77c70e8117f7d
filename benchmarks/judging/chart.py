"""Strip charts as SVG: one dot a round, a bar for the median; light and dark."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks.judging.declarations import Cell, Metric
from benchmarks.judging.figures import spread
from benchmarks.judging.record import Record

WIDTH: Final = 760
_LEFT, _RIGHT = 110, 120
_ROW, _HEAD, _FOOT = 26, 30, 26


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours on a background that the page brings."""

    text: str
    faint: str
    arms: tuple[str, ...]


THEMES: Final[Mapping[str, Palette]] = {
    "light": Palette("#1f2328", "#d1d9e0", ("#0969da", "#bc4c00", "#1a7f37")),
    "dark": Palette("#f0f6fc", "#3d444d", ("#4493f8", "#f0883e", "#3fb950")),
}


def charted(record: Record) -> tuple[Metric, ...]:
    """Returns the metrics that a record has to draw."""
    return tuple(
        metric
        for metric in record.metrics
        if metric.is_charted and any(_values(record, metric, arm) for arm in record.arms)
    )


def draw(record: Record, theme: str) -> str:
    """Returns the chart of a record."""
    palette = THEMES[theme]
    parts: list[str] = []
    top = 0
    for metric in charted(record):
        rows = {arm: _values(record, metric, arm) for arm in record.arms}
        lines, height = _panel(metric, {k: v for k, v in rows.items() if v}, palette, top)
        parts += lines
        top += height
    title = escape(f"{record.bench}: values of each round")
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}"'
            f' width="{WIDTH}" height="{top}" role="img" font-size="13"'
            ' font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
            f"<title>{title}</title>",
            *parts,
            "</svg>\n",
        )
    )


def _panel(
    metric: Metric, rows: Mapping[str, Sequence[float]], palette: Palette, top: int
) -> tuple[list[str], int]:
    end, stride = axis(max(max(values) for values in rows.values()))
    bottom = top + _HEAD + _ROW * len(rows)
    lines = [_text(0, top + 18, metric.heading.replace("`", ""), palette.text, weight="600")]
    for count in range(round(end / stride) + 1):
        at = _place(count * stride, end)
        lines.append(
            f'<line x1="{at}" y1="{top + _HEAD}" x2="{at}" y2="{bottom}" stroke="{palette.faint}"/>'
        )
        lines.append(
            _text(at, bottom + 16, f"{count * stride:g}", palette.text, anchor="middle", size=11)
        )
    for number, (arm, values) in enumerate(rows.items()):
        middle = top + _HEAD + _ROW * number + _ROW // 2
        colour = palette.arms[number % len(palette.arms)]
        lines += _row(arm, values, middle, colour, palette.text, end, metric.digits)
    return lines, _HEAD + _ROW * len(rows) + _FOOT


def _row(
    arm: str,
    values: Sequence[float],
    middle: int,
    colour: str,
    text: str,
    end: float,
    digits: int,
) -> list[str]:
    median = spread(values).median
    at = _place(median, end)
    return [
        _text(0, middle + 4, arm, text),
        *(
            f'<circle cx="{_place(value, end)}" cy="{middle}" r="4" fill="{colour}"'
            ' fill-opacity="0.45"/>'
            for value in values
        ),
        f'<line x1="{at}" y1="{middle - 10}" x2="{at}" y2="{middle + 10}" stroke="{colour}"'
        ' stroke-width="3"/>',
        _text(WIDTH, middle + 4, f"median {median:.{digits}f}", text, anchor="end"),
    ]


def axis(most: float) -> tuple[float, float]:
    """Returns the end of an axis that begins at zero, and the distance of its marks."""
    if most <= 0:
        return 1.0, 0.5
    power = 10.0 ** math.floor(math.log10(most))
    stride = next(
        power * part for part in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if most / (power * part) <= 6
    )
    return math.ceil(most / stride) * stride, stride


def _place(value: float, end: float) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * value / end, 1)


def _text(
    x: float,
    y: float,
    said: str,
    colour: str,
    *,
    anchor: str = "start",
    size: int = 13,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-size="{size}"'
        f' font-weight="{weight}">{escape(said)}</text>'
    )


def _values(record: Record, metric: Metric, arm: str) -> list[float]:
    return [item for item in record.values(Cell(metric.name, arm)) if item is not None]
