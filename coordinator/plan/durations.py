"""Durations as people write and read them."""

import re
from decimal import Decimal

_UNITS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_FORM = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,20})?) ?(ms|s|m|h)")
_SMALLEST_SECONDS = 0.001
_LARGEST_SECONDS = 7 * 24 * 3600
DURATION_PATTERN = f"^{_FORM.pattern}$"


def parse_duration(text: str) -> float:
    """Returns the seconds of a duration such as "30s" or "500ms".

    Raises:
        ValueError: the text is not a number with one of the units ms, s, m, h, or out of range.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("is not a duration; write a number and ms, s, m or h, such as 30s")
    seconds = float(Decimal(match[1]) * _UNITS[match[2]])
    if not _SMALLEST_SECONDS <= seconds <= _LARGEST_SECONDS:
        raise ValueError("is out of range; a duration is 1ms to 168h")
    return seconds


def format_duration(seconds: float) -> str:
    """Returns a duration that `parse_duration` reads back to the same float."""
    return f"{Decimal(repr(seconds)):f}".removesuffix(".0") + "s"
