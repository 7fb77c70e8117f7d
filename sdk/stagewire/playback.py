"""Playback: how far a stream is ahead of whoever plays it, and where it fell silent. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a listener had nothing to play."""

    began: float
    """On the clock of the arrivals."""
    seconds: float


class Playback:
    """A stream and its listener, who plays from the first item on.

    Wherever nothing is left the listener waits, and goes on with the next item; hence what is
    ahead is never below zero, and an item that comes late moves everything behind it.
    """

    def __init__(self, per_second: float) -> None:
        """Begins before the first item.

        Args:
            per_second: Elements that the listener uses up in a second, such as 22050 samples.
        """
        self._per_second = per_second
        self._ends_at: float | None = None

    def slack(self, now: float) -> float:
        """Returns the seconds that the listener has ahead; 0 before the first item."""
        return 0.0 if self._ends_at is None else max(0.0, self._ends_at - now)

    def add(self, count: int, now: float) -> Gap | None:
        """Takes an item of `count` elements; returns the gap that it ended."""
        ended = self._ends_at
        begins = now if ended is None else max(ended, now)
        self._ends_at = begins + count / self._per_second
        return Gap(ended, now - ended) if ended is not None and now > ended else None


def playback_gaps(arrivals: Iterable[tuple[float, int]], per_second: float) -> tuple[Gap, ...]:
    """Returns the gaps that a listener hears.

    Args:
        arrivals: When each item arrived, in seconds, and how many elements it had; in order.
        per_second: Elements that the listener uses up in a second.
    """
    playback = Playback(per_second)
    gaps = (playback.add(count, moment) for moment, count in arrivals)
    return tuple(gap for gap in gaps if gap is not None)
