"""Types of YAML scalars by the rules of JSON, so that no text turns into something else unnoticed.

`null`, `true`, `false` and JSON's numbers are what they look like, with the spellings of the YAML
1.2 core schema for the first three. Everything else is text: `no`, `12:30:00`, `2026-01-01`, `0x1F`
and `1_000`, which readers of YAML 1.1 turn into booleans, numbers and dates. A number where a field
takes text is refused, not converted.
"""

import math
import re
from typing import Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DIGITS = 400
_LARGEST = (1 << 63) - 1


def resolve_plain(text: str) -> Scalar:
    """Returns the value of a scalar without quotes.

    Raises:
        ValueError: it is a number that is too large to be kept exactly as one.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) is None:
        return text
    if len(text) > _DIGITS:
        raise ValueError("reads as a number with too many digits")
    if _INTEGER.fullmatch(text):
        whole = int(text)
        if abs(whole) > _LARGEST:
            raise ValueError("reads as a whole number beyond 64 bits")
        return whole
    number = float(text)
    if math.isinf(number):
        raise ValueError("reads as a number that is too large")
    return number
