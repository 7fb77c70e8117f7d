"""Statistics of repeated measurements."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.judging.declarations import Better

MIDDLE_FROM_ROUNDS: Final = 20
"""Rounds from which the middle half of the ratios is their spread, and no longer all of them.

That all of five rounds agree by chance happens once in 16 runs; that three quarters of twenty do,
once in 24. The whole range of many rounds would only tell of the worst one.
"""


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the values of one series lie."""

    count: int
    median: float
    least: float
    most: float
    p10: float
    p99: float

    def best(self, better: Better) -> float:
        """Returns the best value in the direction that is better."""
        return self.most if better is Better.HIGHER else self.least


@dataclass(frozen=True, slots=True)
class Ratio:
    """One series by another, whose values belong together by their round."""

    value: float
    """Median by median."""
    low: float
    high: float
    """Where the ratios of single rounds lie."""
    rounds: int
    """In which both sides gave a value."""

    def holds(self, value: float) -> bool:
        """Whether a value lies inside the spread, so that the rounds do not agree about it."""
        return self.low <= value <= self.high


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
        p99=quantile(ordered, 0.99),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """Returns the value below which `part` of the sorted values lie, interpolated."""
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def ratio(over: Sequence[float | None], under: Sequence[float | None]) -> Ratio | None:
    """Returns the ratio of two series by the rounds that both have; None when they share none."""
    pairs = [
        (mine, other)
        for mine, other in zip(over, under, strict=False)
        if mine is not None and other is not None and other > 0
    ]
    if not pairs:
        return None
    ratios = sorted(mine / other for mine, other in pairs)
    is_many = len(ratios) >= MIDDLE_FROM_ROUNDS
    return Ratio(
        statistics.median(mine for mine, _ in pairs)
        / statistics.median(other for _, other in pairs),
        quantile(ratios, 0.25) if is_many else ratios[0],
        quantile(ratios, 0.75) if is_many else ratios[-1],
        len(pairs),
    )


def rotated(names: Sequence[str], turn: int) -> tuple[str, ...]:
    """Returns the names in an order that gives each the first place equally often."""
    shift = turn % len(names)
    return (*names[shift:], *names[:shift])
