"""Regression bands: a run beside the last kept record of the same benchmark."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.judging.declarations import Better, Cell
from benchmarks.judging.figures import spread
from benchmarks.judging.record import Record
from benchmarks.judging.verdicts import Word, judge

_MACHINE: Final = ("processor", "cores", "affinity")
"""What must be the same for absolute figures to be comparable."""


class Standing(enum.Enum):
    """How a figure stands to its band."""

    WITHIN = "within"
    BETTER = "better"
    MISSED = "missed"
    OPEN = "no verdict"
    OTHER_MACHINE = "other machine"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside the kept one."""

    title: str
    kept: float
    found: float
    band: float
    standing: Standing

    @property
    def change(self) -> float:
        """Share by which the figure grew."""
        return self.found / self.kept - 1 if self.kept else 0.0


def check(found: Record, kept: Record) -> tuple[Row, ...]:
    """Compares every figure that has a band: ratios always, values on the same machine alone."""
    return (*_ratios(found, kept), *_values(found, kept))


def stand(found: float, kept: float, band: float, better: Better) -> Standing:
    """Returns how a figure stands to a band around the kept one."""
    low, high = kept * (1 - band), kept * (1 + band)
    if low <= found <= high:
        return Standing.WITHIN
    is_better = (found > high) if better is Better.HIGHER else (found < low)
    return Standing.BETTER if is_better else Standing.MISSED


def is_same_machine(one: Record, other: Record) -> bool:
    """Whether absolute figures of two records may be compared."""

    def machine(record: Record) -> list[Any]:  # JSON
        return [record.provenance.get(name) for name in _MACHINE]

    return machine(one) == machine(other)


def is_missed(rows: Sequence[Row]) -> bool:
    """Whether a figure left its band for the worse."""
    return any(row.standing is Standing.MISSED for row in rows)


def is_open(rows: Sequence[Row]) -> bool:
    """Whether nothing can be said of a figure, or there is none to speak of."""
    return not rows or any(row.standing is Standing.OPEN for row in rows)


def _ratios(found: Record, kept: Record) -> list[Row]:
    before = {item.comparison.name: item.ratio for item in judge(kept)}
    rows = []
    for item in judge(found):
        comparison, old = item.comparison, before.get(item.comparison.name)
        if comparison.band is None or old is None or item.ratio is None:
            continue
        better = found.metric(comparison.over.metric).better
        standing = stand(item.ratio.value, old.value, comparison.band, better)
        if Word.NO_VERDICT in (item.word, item.limit_word):
            standing = Standing.OPEN
        rows.append(Row(comparison.title, old.value, item.ratio.value, comparison.band, standing))
    return rows


def _values(found: Record, kept: Record) -> list[Row]:
    rows = []
    is_same = is_same_machine(found, kept)
    for metric in found.metrics:
        if metric.band is None:
            continue
        for arm in found.series.get(metric.name, {}):
            now, before = (
                [value for value in record.values(Cell(metric.name, arm)) if value is not None]
                for record in (found, kept)
            )
            if not now or not before:
                continue
            new, old = spread(now).median, spread(before).median
            standing = (
                stand(new, old, metric.band, metric.better) if is_same else Standing.OTHER_MACHINE
            )
            title = f"{metric.heading}: {arm}"
            rows.append(Row(title, old, new, metric.band, standing))
    return rows
