from dataclasses import replace

import pytest

from benchmarks.judging.bands import Standing, check, is_missed, is_open, stand
from benchmarks.judging.declarations import Better

pytestmark = pytest.mark.unit

FLOOR = [2.0] * 5


def standings(found, kept):
    return {row.title: row.standing for row in check(found, kept)}


def test_a_run_like_the_kept_one_is_within_its_bands(make_record):
    rows = check(make_record({"product": [2.1] * 5, "floor": FLOOR}), make_record())

    assert {row.standing for row in rows} == {Standing.WITHIN}
    assert not is_missed(rows)
    assert not is_open(rows)


def test_a_run_that_is_worse_misses_its_band(make_record):
    rows = check(make_record({"product": [2.3] * 5, "floor": FLOOR}), make_record())

    assert [row.standing for row in rows] == [Standing.MISSED, Standing.MISSED, Standing.WITHIN]
    assert rows[0].change == pytest.approx(0.15)
    assert is_missed(rows)


def test_a_run_that_is_better_is_no_miss(make_record):
    rows = check(make_record({"product": [1.0] * 5, "floor": FLOOR}), make_record())

    assert rows[0].standing is Standing.BETTER
    assert not is_missed(rows)


def test_values_of_another_machine_are_not_compared_but_ratios_are(make_record):
    kept = make_record()
    found = make_record({"product": [9.0] * 5, "floor": [9.0] * 5})
    elsewhere = replace(found, provenance={**found.provenance, "processor": "Slide rule"})

    assert standings(elsewhere, kept) == {
        "Time by floor": Standing.WITHIN,
        "Time, ms: product": Standing.OTHER_MACHINE,
        "Time, ms: floor": Standing.OTHER_MACHINE,
    }


def test_a_ratio_without_a_verdict_leaves_the_check_open(make_record):
    rows = check(make_record({"product": [2.0] * 2, "floor": [2.0] * 2}), make_record())

    assert rows[0].standing is Standing.OPEN
    assert is_open(rows)


def test_nothing_to_compare_leaves_the_check_open():
    assert is_open(())


def test_fewer_is_worse_where_more_is_better():
    assert stand(0.8, 1.0, 0.1, Better.HIGHER) is Standing.MISSED
    assert stand(1.2, 1.0, 0.1, Better.HIGHER) is Standing.BETTER
    assert stand(1.2, 1.0, 0.1, Better.LOWER) is Standing.MISSED
