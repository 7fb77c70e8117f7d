"""Numbers of Python as elements of tensors hold them: bounds of integers, bits of short floats.

Written without numpy, which knows neither the floats of `bfloat16` and eight bits nor the integers
of four.
"""

import math
from dataclasses import dataclass
from typing import Final

from stagewire.descriptor import DataType, element_bits


@dataclass(frozen=True, slots=True)
class _ShortFloat:
    """Form of a float; patterns are without their sign."""

    mantissa_bits: int
    exponent_bias: int
    largest: int
    """Pattern of the largest finite number."""
    infinity: int | None
    nan: int


_FORMS: Final = {
    DataType.BFLOAT16: _ShortFloat(7, 127, 0x7F7F, 0x7F80, 0x7FC0),
    DataType.FLOAT8_E4M3FN: _ShortFloat(3, 7, 0x7E, None, 0x7F),
    DataType.FLOAT8_E5M2: _ShortFloat(2, 15, 0x7B, 0x7C, 0x7E),
}
SHORT_FLOATS: Final = frozenset(_FORMS)
"""Floats that numpy does not know."""


def integer_bounds(data_type: DataType) -> tuple[int, int]:
    """Returns the least and the greatest number of a type of integers."""
    bits = element_bits(data_type)
    if data_type.name.startswith("UINT"):
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def float_bits(data_type: DataType, number: float) -> int:
    """Returns the pattern of the short float nearest to a number, of two equally near the even one.

    Beyond the largest it is infinity, or NaN where the type has no infinity.

    Raises:
        OverflowError: an integer that is beyond every float of Python.
    """
    form = _FORMS[data_type]
    sign = 1 << element_bits(data_type) - 1 if math.copysign(1, number) < 0 else 0
    if math.isnan(number):
        return sign | form.nan
    pattern = form.largest + 1
    if not math.isinf(number):
        # Below the least normal exponent the steps keep their width: numbers become subnormal.
        least = 1 - form.exponent_bias
        exponent = max(math.frexp(number)[1] - 1, least) if number else least
        steps = round(math.ldexp(abs(number), form.mantissa_bits - exponent))
        # A step too many carries into the exponent by itself.
        pattern = steps + (exponent + form.exponent_bias - 1 << form.mantissa_bits)
    if pattern > form.largest:
        pattern = form.nan if form.infinity is None else form.infinity
    return sign | pattern


def float_of_bits(data_type: DataType, bits: int) -> float:
    """Returns the number of a pattern."""
    form = _FORMS[data_type]
    sign_bit = 1 << element_bits(data_type) - 1
    pattern = bits & sign_bit - 1
    number = math.nan
    if pattern <= form.largest:
        exponent, mantissa = divmod(pattern, 1 << form.mantissa_bits)
        if exponent:
            mantissa += 1 << form.mantissa_bits
        power = max(exponent, 1) - form.exponent_bias - form.mantissa_bits
        number = math.ldexp(mantissa, power)
    elif pattern == form.infinity:
        number = math.inf
    return -number if bits & sign_bit else number
