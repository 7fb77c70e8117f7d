"""Statistics of repeated measurements. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the values of one series lie."""

    count: int
    median: float
    least: float
    most: float
    p10: float
    p25: float
    p75: float
    p99: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity of the product beside the same quantity of its reference."""

    product: Spread
    reference: Spread
    ratio: float
    """Median of the product by median of the reference."""
    ratios: tuple[float, ...]
    """One a round: both sides of a round saw the same machine."""

    @property
    def is_difference(self) -> bool:
        """Whether the sides differ at all: no round went the other way."""
        return not min(self.ratios) <= 1.0 <= max(self.ratios)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One promise: a figure must not exceed its limit."""

    name: str
    value: float
    limit: float
    unit: str = "x"
    """Of value and limit; `x` for ratios."""

    @property
    def is_met(self) -> bool:
        """Whether the promise holds."""
        return self.value <= self.limit


def spread(values: Sequence[float]) -> Spread:
    """Returns the spread of at least one value."""
    if not values:
        raise ValueError("there is nothing to summarise")
    ordered = sorted(values)
    return Spread(
        count=len(ordered),
        median=statistics.median(ordered),
        least=ordered[0],
        most=ordered[-1],
        p10=quantile(ordered, 0.10),
        p25=quantile(ordered, 0.25),
        p75=quantile(ordered, 0.75),
        p99=quantile(ordered, 0.99),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """Returns the value below which `part` of the sorted values lie, interpolated."""
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def compare(product: Sequence[float], reference: Sequence[float]) -> Comparison:
    """Compares two series whose values belong together by their round."""
    if len(product) != len(reference):
        raise ValueError(f"{len(product)} rounds of one side, {len(reference)} of the other")
    ours, theirs = spread(product), spread(reference)
    return Comparison(
        ours,
        theirs,
        ours.median / theirs.median,
        tuple(mine / other for mine, other in zip(product, reference, strict=True)),
    )


def rotated(names: Sequence[str], turn: int) -> tuple[str, ...]:
    """Returns the names in an order that gives each the first place equally often."""
    shift = turn % len(names)
    return (*names[shift:], *names[:shift])


def comparison_json(comparison: Comparison) -> Mapping[str, Any]:  # JSON values
    """Returns a comparison for a report file."""
    return asdict(comparison) | {"is_difference": comparison.is_difference}


def criterion_json(criterion: Criterion) -> Mapping[str, Any]:  # JSON values
    """Returns a criterion for a report file."""
    return asdict(criterion) | {"is_met": criterion.is_met}
