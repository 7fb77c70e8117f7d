import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.scalars import resolve_plain

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No", "NO", "yes", "on", "off", "y", "n", "12:30:00", "190:20:30", "2026-01-01"),
        *(
            "0x1F",
            "0o17",
            "0b101",
            "007",
            "1_000",
            "+1",
            ".5",
            "1.",
            ".inf",
            "-.INF",
            ".nan",
            "NaN",
        ),
        *("Infinity", "tRue", "nUll", "-", "=", "<<", "1e", "1e9GiB", "30s", "\u0663", "1\n"),
    ],
)
def test_what_only_old_yaml_converts_stays_text(text):
    assert resolve_plain(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("", None), ("~", None), ("null", None), ("NULL", None)),
        *(("true", True), ("False", False)),
        *(("0", 0), ("-12", -12), ("1e9", 1e9), ("1.50", 1.5), ("-0.5E-3", -0.0005)),
        *(("9223372036854775807", 2**63 - 1), ("-9223372036854775807", 1 - 2**63)),
    ],
)
def test_the_words_and_numbers_of_json_are_values(text, value):
    resolved = resolve_plain(text)

    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "9" * 64, "9" * 5000, "1e400", "-1e400", f"{'1' * 500}e3"]
)
def test_a_number_that_cannot_be_kept_is_refused(text):
    with pytest.raises(ValueError, match=r"reads as a .*number"):
        resolve_plain(text)


@given(st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False)))
def test_every_number_that_json_writes_is_read_back(number):
    resolved = resolve_plain(json.dumps(number))

    assert resolved == number
    assert type(resolved) is type(number)
