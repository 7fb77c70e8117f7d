"""Numbers of Python in the floats that numpy lacks, against a library that has them."""

import bisect
import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewire.bits import STORAGE
from stagewire.descriptor import DataType, element_bits
from stagewire.rounding import SHORT_FLOATS, float_bits, float_of_bits, integer_bounds

pytestmark = pytest.mark.unit

FLOATS = sorted(SHORT_FLOATS)


def all_numbers(data_type):
    """Every number of a type by its pattern, as the library reads it."""
    patterns = np.arange(1 << element_bits(data_type), dtype=STORAGE[data_type])
    with np.errstate(invalid="ignore"):
        return patterns.view(getattr(ml_dtypes, data_type.spelling)).astype(np.float64).tolist()


@pytest.mark.parametrize("data_type", FLOATS)
def test_every_pattern_is_the_number_that_the_library_reads(data_type):
    for pattern, number in enumerate(all_numbers(data_type)):
        ours = float_of_bits(data_type, pattern)
        assert ours == number or (math.isnan(ours) and math.isnan(number))
        assert math.copysign(1, ours) == math.copysign(1, number)
        if not math.isnan(number):
            assert float_bits(data_type, number) == pattern


@pytest.mark.parametrize("data_type", FLOATS)
def test_between_two_numbers_the_nearest_is_taken_and_of_two_the_even_one(data_type):
    finite = sorted(
        (number, pattern)
        for pattern, number in enumerate(all_numbers(data_type))
        if math.isfinite(number) and math.copysign(1, number) > 0
    )
    for (low, low_bits), (high, high_bits) in itertools.pairwise(finite):
        middle = (low + high) / 2
        assert float_bits(data_type, middle) == (high_bits if low_bits % 2 else low_bits)
        assert float_bits(data_type, math.nextafter(middle, 0)) == low_bits
        assert float_bits(data_type, math.nextafter(middle, math.inf)) == high_bits


NUMBERS = st.floats(allow_nan=False) | st.floats(-1000, 1000) | st.integers(-(2**40), 2**40)


@settings(max_examples=50)
@given(st.sampled_from(FLOATS), NUMBERS)
def test_a_number_becomes_the_nearest_or_is_too_large(data_type, number):
    found = float_of_bits(data_type, float_bits(data_type, number))
    numbers = sorted(item for item in all_numbers(data_type) if math.isfinite(item))
    if not math.isfinite(found):
        assert abs(number) > max(numbers)
        return
    place = bisect.bisect(numbers, number)
    nearest = min(
        abs(Fraction(item) - Fraction(number)) for item in numbers[max(place - 1, 0) : place + 1]
    )
    assert abs(Fraction(found) - Fraction(number)) == nearest


@given(st.sampled_from([DataType.FLOAT8_E4M3FN, DataType.FLOAT8_E5M2]), st.floats())
def test_the_library_rounds_to_the_same_pattern(data_type, number):
    with np.errstate(over="ignore"):
        theirs = np.array([number]).astype(getattr(ml_dtypes, data_type.spelling))
    ours = float_of_bits(data_type, float_bits(data_type, number))
    assert np.array_equal(theirs.astype(np.float64), [ours], equal_nan=True)


def test_what_is_beyond_every_float_overflows():
    for data_type in FLOATS:
        with pytest.raises(OverflowError):
            float_bits(data_type, 10**400)


@pytest.mark.parametrize("data_type", [item for item in DataType if "INT" in item.name])
def test_the_bounds_of_integers_are_those_of_the_library(data_type):
    bounds = ml_dtypes.iinfo(data_type.spelling)
    assert integer_bounds(data_type) == (bounds.min, bounds.max)
