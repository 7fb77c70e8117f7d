"""What callers give, as the wire needs it: times that can be waited for, numbers of no own type.

A number of Python has no element type; it takes that of its port where it stays the same number.
Only fractions are rounded, to the nearest that a port of floats can hold: hardly any decimal
fraction is a float of 32 bits.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from stagewire.bits import STORAGE, array_of
from stagewire.errors import FieldInvalidError, StageError, TensorMismatchError
from stagewire.ports import Port
from stagewire.rounding import SHORT_FLOATS, float_bits, float_of_bits, integer_bounds
from stagewire.tensor import Array, DataType, Value, data_type_of

Number: TypeAlias = "bool | int | float"
Given: TypeAlias = "Value | Number | np.generic | Sequence[Number | np.generic | str | bytes]"
"""A value, a number of Python or numpy, or a row of them or of strings."""

_LONGEST_SECONDS: Final = 365 * 24 * 3600
"""gRPC takes a time that is much longer for one that has passed."""
_SHOWN_CHARACTERS: Final = 60
_NUMBERS: Final = "biuf"
"""Kinds of numpy's types that are numbers as Python has them."""


def check_seconds(name: str, value: float | None) -> float | None:
    """Returns a time limit that can be waited for.

    Raises:
        FieldInvalidError: it is none; the message names it.
    """
    if value is None:
        return None
    number = _plain(value)
    if not _is_number(number) or not 0 < number <= _LONGEST_SECONDS:
        raise FieldInvalidError(
            f"{name} is {shown(value)}; it must be a number of seconds above 0 and at most"
            f" {_LONGEST_SECONDS}, or None",
            field=name,
        )
    return float(number)


def whole_number(value: Any, failure: StageError) -> int:
    """Returns a number of any type, hence Any, that is whole.

    Raises:
        StageError: the given failure, when it is not.
    """
    number = _plain(value)
    if not _is_number(number) or (isinstance(number, float) and not number.is_integer()):
        raise failure
    return int(number)


def needs_port(given: object) -> bool:
    """Whether it depends on its port which element type a value has."""
    if isinstance(given, np.generic):
        return given.dtype.kind in _NUMBERS
    return isinstance(given, (bool, int, float, list, tuple))


def typed(port: Port, given: Any) -> Value:
    """Returns what was given, of any type, hence Any, as a value of a port's element type.

    Raises:
        TensorMismatchError: the port cannot hold it; the message names the port and the value.
    """
    single = np.asarray(given) if isinstance(given, np.generic) else None
    if single is not None and data_type_of(single) is port.data_type:
        return single
    is_row = isinstance(given, (list, tuple))
    if len(port.dimensions) != is_row:
        what = f"a {type(given).__name__}" if is_row else f"the single number {shown(given)}"
        raise _mismatch(port, f"{what}; make it a numpy array of that shape")
    with np.errstate(over="ignore"):
        elements = [_element(port, item) for item in (given if is_row else [given])]
    return _array(port.data_type, elements, (len(elements),) if is_row else ())


def shown(value: object) -> str:
    """Returns a value as a message can name it."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write out an integer of more than some thousand digits.
        text = f"a {type(value).__name__} of too many digits"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " ..."


def _plain(value: Any) -> Any:
    """Returns a single number of numpy as one of Python, and whatever else as it is, hence Any."""
    is_single = isinstance(value, (np.generic, np.ndarray)) and value.size == 1
    return value.item() if is_single else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _mismatch(port: Port, got: str) -> TensorMismatchError:
    return TensorMismatchError(f"port {port.name!r} takes {port} and got {got}", port=port.name)


def _element(port: Port, given: Any) -> Any:
    """Returns one element as its port can hold it; a number or a string, hence Any."""
    data_type = port.data_type
    if data_type.is_string:
        wanted = str if data_type is DataType.UTF8 else bytes
        if not isinstance(given, wanted):
            raise _mismatch(port, f"{shown(given)}, which is no {wanted.__name__}")
        return given
    number = _plain(given)
    if not isinstance(number, (bool, int, float)):
        raise _mismatch(port, f"{shown(given)}, which is no number")
    if data_type is DataType.BOOL:
        if number not in (0, 1):
            raise _mismatch(port, f"{shown(given)}, which is neither true nor false")
        return bool(number)
    if data_type.name.startswith(("INT", "UINT")):
        return _integer(port, number)
    return _float(port, number)


def _integer(port: Port, number: Number) -> int:
    if isinstance(number, float) and not number.is_integer():
        raise _mismatch(port, f"{number!r}, which is no whole number")
    least, greatest = integer_bounds(port.data_type)
    if not least <= number <= greatest:
        raise _mismatch(port, f"{shown(number)}, which is outside {least} to {greatest}")
    return int(number)


def _float(port: Port, number: Number) -> float:
    try:
        nearest = _nearest(port.data_type, number)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest) and not (isinstance(number, float) and _equals(nearest, number)):
        raise _mismatch(port, f"{shown(number)}, which is too large for it")
    if nearest == 0 and number != 0:
        raise _mismatch(port, f"{shown(number)}, which is too small for it")
    if isinstance(number, int) and nearest != number:
        raise _mismatch(port, f"{shown(number)}, which it holds only as {nearest:.0f}")
    return nearest


def _nearest(data_type: DataType, number: Number) -> float:
    if data_type in SHORT_FLOATS:
        return float_of_bits(data_type, float_bits(data_type, number))
    return float(np.dtype(data_type.spelling).type(number))


def _equals(one: float, other: float) -> bool:
    """Whether two numbers are the same, as two that are none also are."""
    return one == other or (math.isnan(one) and math.isnan(other))


def _array(data_type: DataType, elements: list[Any], shape: tuple[int, ...]) -> Array:
    if data_type.is_string:
        strings: Array = np.empty(len(elements), object)
        strings[:] = elements
        return strings.reshape(shape)
    if data_type in STORAGE:
        return array_of(data_type, elements, shape)
    return np.array(elements, data_type.spelling).reshape(shape)
