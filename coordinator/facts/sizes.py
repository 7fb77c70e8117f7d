"""Byte sizes as people write and read them."""

import re
from fractions import Fraction

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_FORM = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(B|KiB|MiB|GiB|TiB)\s*")


def parse_size(text: str) -> int:
    """Returns the bytes of a size such as "260MiB".

    Raises:
        ValueError: the text is not a number with one of the units B, KiB, MiB, GiB, TiB.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write a number and B, KiB, MiB, GiB or TiB")
    return int(Fraction(match[1]) * _UNITS[match[2]])


def format_size(size_bytes: int) -> str:
    """Returns a size in the largest unit that keeps it above one, such as "1.2 GiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if abs(size_bytes) >= _UNITS[unit]:
            value = size_bytes / _UNITS[unit]
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"  # noqa: PLR2004
    return f"{size_bytes} B"
