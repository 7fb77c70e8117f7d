import pytest

from benchmarks.judging.tables import Table, finding_table, value_table
from benchmarks.judging.verdicts import judge

pytestmark = pytest.mark.unit


def test_columns_are_as_wide_as_their_widest_cell():
    lines = Table(("name", "s"), (("a", "10.0"), ("long name", "2.5"))).plain().splitlines()

    assert lines == ["name          s", "a          10.0", "long name   2.5"]


def test_a_table_of_a_page_has_its_figures_to_the_right():
    lines = Table(("name", "s"), (("a|b", "10.0"),)).markdown().splitlines()

    assert lines == ["| name | s |", "| --- | ---: |", "| a/b | 10.0 |"]


def test_every_arm_has_a_row_with_its_median_and_its_best(make_record):
    rows = value_table(make_record({"product": [3.0, None, 1.0, 2.0], "floor": [None]})).rows

    assert rows == (
        ("Time, ms", "product", "2.00", "1.00", "1.00..3.00", "3"),
        ("Time, ms", "floor", "-", "-", "-", "0"),
    )


def test_a_comparison_shows_ratio_spread_limit_and_verdict(make_record):
    record = make_record({"product": [4.0, 4.0, 4.0, 4.0, 5.0], "floor": [2.0] * 5})

    (row,) = finding_table(judge(record)).rows

    assert row == ("Time by floor", "2.00", "2.00..2.50", "1.50", "worse", "**missed**")


def test_why_there_is_no_verdict_stands_beside_it(make_record):
    (row,) = finding_table(judge(make_record({"product": [4.0], "floor": [2.0]}))).rows

    assert row[4:] == ("", "no verdict: 1 of at least 5 rounds")
