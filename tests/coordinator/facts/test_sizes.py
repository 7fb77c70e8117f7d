import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.sizes import format_size, parse_size

pytestmark = pytest.mark.unit

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0B", 0),
        ("1B", 1),
        ("260MiB", 260 << 20),
        ("1.5GiB", 3 << 29),
        ("  2 TiB ", 2 << 40),
        ("0.5KiB", 512),
    ],
)
def test_a_size_is_a_number_and_a_binary_unit(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    ["", "260", "MiB", "260MB", "260mib", "-1MiB", "+1MiB", "1e3MiB", "1,5GiB", "1.MiB", "nan"],
)
def test_anything_else_is_refused_with_the_units(text):
    with pytest.raises(ValueError, match="KiB, MiB, GiB or TiB"):
        parse_size(text)


@given(st.integers(0, 1 << 20), st.sampled_from(sorted(UNITS)))
def test_whole_sizes_are_exact(number, unit):
    assert parse_size(f"{number}{unit}") == number * UNITS[unit]


@given(st.integers(0, 1 << 49))
def test_a_shown_size_is_close_to_the_bytes(size_bytes):
    assert parse_size(format_size(size_bytes)) == pytest.approx(size_bytes, rel=0.06)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (260 << 20, "260 MiB"), (3 << 29, "1.5 GiB")],
)
def test_a_size_is_shown_in_the_largest_unit(size_bytes, text):
    assert format_size(size_bytes) == text
