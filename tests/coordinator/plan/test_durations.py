import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.durations import format_duration, parse_duration

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("500ms", 0.5),
        ("1.5 s", 1.5),
        ("2m", 120.0),
        ("168h", 604800.0),
        ("1ms", 0.001),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "s",
        "-1s",
        "+1s",
        "1e3s",
        "12:30:00",
        "30 sec",
        "1m30s",
        "\u0663s",
        "30s\n",
        "9" * 500,
    ],
)
def test_anything_else_is_refused_with_the_units(text):
    with pytest.raises(ValueError, match="ms, s, m or h"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "0.9ms", "169h", "999999999999h"])
def test_a_duration_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match="1ms to 168h"):
        parse_duration(text)


@given(st.floats(0.001, 604800.0))
def test_a_duration_that_is_written_is_read_back(seconds):
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(1, 604800))
def test_whole_seconds_are_written_plainly(seconds):
    assert format_duration(float(seconds)) == f"{seconds}s"
