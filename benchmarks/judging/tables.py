"""Tables of a run: rows of cells, and their two forms, plain text and Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.judging import bands
from benchmarks.judging.declarations import Better, Cell, Metric
from benchmarks.judging.figures import spread
from benchmarks.judging.record import Record
from benchmarks.judging.verdicts import Finding, Word


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their columns; the first column holds text, the others mostly figures."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def plain(self) -> str:
        """Returns it for a terminal."""
        lines = (self.columns, *self.rows)
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def markdown(self) -> str:
        """Returns it for a page."""
        marks = ("---", *("---:" for _ in self.columns[1:]))
        return "\n".join(
            f"| {' | '.join(cell.replace('|', '/') for cell in line)} |"
            for line in (self.columns, marks, *self.rows)
        )


def value_table(record: Record) -> Table:
    """Returns one row for each metric of each arm."""
    rows = []
    for metric in record.metrics:
        for arm in record.series.get(metric.name, {}):
            values = [item for item in record.values(Cell(metric.name, arm)) if item is not None]
            rows.append((metric.heading, arm, *_cells(metric, values)))
    return Table(("Figure", "Arm", "Median", "Best", "Range", "Rounds"), tuple(rows))


def _cells(metric: Metric, values: Sequence[float]) -> tuple[str, str, str, str]:
    if not values:
        return "-", "-", "-", "0"
    found, digits = spread(values), metric.digits
    best = "" if metric.better is Better.NEITHER else f"{found.best(metric.better):.{digits}f}"
    return (
        f"{found.median:.{digits}f}",
        best,
        f"{found.least:.{digits}f}..{found.most:.{digits}f}",
        str(found.count),
    )


def finding_table(findings: Sequence[Finding]) -> Table:
    """Returns one row for each comparison."""
    rows = []
    for item in findings:
        found, limit = item.ratio, item.comparison.limit
        words = [item.word.value if limit is None else (item.limit_word or item.word).value]
        if item.reason:
            words.append(item.reason)
        rows.append(
            (
                item.comparison.title,
                "-" if found is None else f"{found.value:.2f}",
                "-" if found is None else f"{found.low:.2f}..{found.high:.2f}",
                "" if limit is None else f"{limit:.2f}",
                "" if item.word is Word.NO_VERDICT else item.word.value,
                ": ".join(words) if limit is not None or item.reason else "",
            )
        )
    return Table(
        ("Comparison", "Ratio", "Of rounds", "Limit", "First side", "Verdict"), tuple(rows)
    )


def band_table(rows: Sequence[bands.Row]) -> Table:
    """Returns one row for each figure that has a band."""
    return Table(
        ("Figure", "Kept", "Now", "Change", "Band", "Standing"),
        tuple(
            (
                row.title,
                f"{row.kept:.3g}",
                f"{row.found:.3g}",
                f"{row.change:+.1%}",
                f"{row.band:.0%}",
                row.standing.value,
            )
            for row in rows
        ),
    )
