import pytest

from benchmarks.figures import Criterion, compare, rotated, spread

pytestmark = pytest.mark.unit


def test_a_spread_says_where_values_lie():
    found = spread([4.0, 1.0, 3.0, 2.0, 5.0])

    assert (found.count, found.median, found.least, found.most) == (5, 3.0, 1.0, 5.0)
    assert (found.p25, found.p75) == (2.0, 4.0)
    assert found.p10 == pytest.approx(1.4)
    assert found.p99 == pytest.approx(4.96)


def test_one_value_is_its_own_spread():
    found = spread([2.5])

    assert {found.median, found.least, found.most, found.p10, found.p99} == {2.5}


def test_nothing_has_no_spread():
    with pytest.raises(ValueError, match="nothing"):
        spread([])


def test_a_ratio_is_of_medians_and_rounds_are_paired():
    found = compare([2.0, 4.0, 6.0], [1.0, 2.0, 4.0])

    assert found.ratio == 2.0
    assert found.ratios == (2.0, 2.0, 1.5)


def test_rounds_that_disagree_are_no_difference():
    assert not compare([1.0, 2.0, 3.0], [1.1, 1.9, 2.0]).is_difference


def test_rounds_that_agree_are_a_difference():
    assert compare([1.2, 2.2, 3.2], [1.1, 1.9, 2.0]).is_difference
    assert compare([1.0, 1.8, 1.9], [1.1, 1.9, 2.0]).is_difference


def test_sides_need_equally_many_rounds():
    with pytest.raises(ValueError, match="2 rounds of one side, 1 of the other"):
        compare([1.0, 2.0], [1.0])


def test_each_side_is_first_in_its_turn():
    names = ("a", "b", "c")

    assert [rotated(names, turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated(names, 1) == ("b", "c", "a")


def test_a_criterion_is_met_at_its_limit():
    assert Criterion("wall", 1.10, 1.10).is_met
    assert not Criterion("wall", 1.11, 1.10).is_met
