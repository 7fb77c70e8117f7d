"""What a benchmark prints. Pure: figures in, lines out."""

from collections.abc import Mapping, Sequence

from benchmarks.figures import Comparison, Criterion, Spread
from benchmarks.machine import Machine

_SECOND_DIGITS = 3


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns rows under their columns; the first column to the left, the others to the right."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def comparison_table(rows: Mapping[str, tuple[Comparison, str]]) -> str:
    """Returns one row a quantity: both sides with their spread, and the ratio with its own."""
    return table(
        ("", "product", "min..max", "reference", "min..max", "ratio", "of rounds", "verdict"),
        [
            (
                name,
                f"{item.product.median:.{_SECOND_DIGITS}f} {unit}",
                _range(item.product),
                f"{item.reference.median:.{_SECOND_DIGITS}f} {unit}",
                _range(item.reference),
                f"{item.ratio:.2f}",
                f"{min(item.ratios):.2f}..{max(item.ratios):.2f}",
                verdict(item),
            )
            for name, (item, unit) in rows.items()
        ],
    )


def verdict(item: Comparison) -> str:
    """Returns what may be said of a comparison."""
    if not item.is_difference:
        return "no difference"
    return "less" if item.ratio < 1 else "more"


def spread_table(rows: Mapping[str, Spread], unit: str) -> str:
    """Returns one row a series."""
    return table(
        ("", "count", f"median {unit}", "p10", "p99", "min", "max"),
        [
            (
                name,
                str(item.count),
                f"{item.median:.0f}",
                f"{item.p10:.0f}",
                f"{item.p99:.0f}",
                f"{item.least:.0f}",
                f"{item.most:.0f}",
            )
            for name, item in rows.items()
        ],
    )


def criteria_table(criteria: Sequence[Criterion]) -> str:
    """Returns one row a criterion, with pass or miss."""
    return table(
        ("criterion", "figure", "limit", ""),
        [
            (
                item.name,
                f"{item.value:.2f} {item.unit}",
                f"<= {item.limit:.2f} {item.unit}",
                "pass" if item.is_met else "MISS",
            )
            for item in criteria
        ],
    )


def machine_lines(machine: Machine, versions: Mapping[str, str]) -> str:
    """Returns what a reader must know before comparing figures."""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n".join(
        (
            f"machine   {machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB",
            f"system    {machine.system}",
            f"date      {machine.date}",
            f"load      {machine.load:.2f} before the run",
            f"versions  {named}",
        )
    )


def _range(item: Spread) -> str:
    return f"{item.least:.{_SECOND_DIGITS}f}..{item.most:.{_SECOND_DIGITS}f}"
