import pytest

from benchmarks import report
from benchmarks.figures import Criterion, compare
from benchmarks.machine import Machine

pytestmark = pytest.mark.unit


def test_columns_are_as_wide_as_their_widest_cell():
    lines = report.table(("name", "s"), [("a", "10.0"), ("long name", "2.5")]).splitlines()

    assert lines == ["name          s", "a          10.0", "long name   2.5"]


def test_a_comparison_shows_both_sides_their_spread_and_the_ratio():
    text = report.comparison_table({"wall time": (compare([2.0, 3.0], [1.0, 1.5]), "s")})

    row = text.splitlines()[1].split("  ")
    assert [cell.strip() for cell in row if cell] == [
        "wall time",
        "2.500 s",
        "2.000..3.000",
        "1.250 s",
        "1.000..1.500",
        "2.00",
        "2.00..2.00",
        "more",
    ]


@pytest.mark.parametrize(
    ("product", "said"),
    [([1.0, 3.0], "no difference"), ([0.5, 0.6], "less"), ([2.5, 2.6], "more")],
)
def test_a_verdict_names_a_difference_only_where_all_rounds_agree(product, said):
    assert report.verdict(compare(product, [2.0, 2.0])) == said


def test_a_missed_criterion_stands_out():
    text = report.criteria_table([Criterion("wall", 1.2, 1.1), Criterion("READY", 2.0, 2.5, "s")])

    assert text.splitlines()[1].endswith("<= 1.10 x  MISS")
    assert text.splitlines()[2].endswith("<= 2.50 s  pass")


def test_the_machine_is_part_of_every_report():
    machine = Machine("AMD", 2, 24.4, "Linux 6", "2026-01-01T00:00:00+00:00", 0.25)

    text = report.machine_lines(machine, {"numpy": "2.4", "grpcio": "1.8"})

    assert "AMD, 2 cores, 24 GiB" in text
    assert "0.25 before the run" in text
    assert "numpy 2.4, grpcio 1.8" in text
