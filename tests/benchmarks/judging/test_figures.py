import pytest

from benchmarks.judging.declarations import Better
from benchmarks.judging.figures import MIDDLE_FROM_ROUNDS, ratio, rotated, spread

pytestmark = pytest.mark.unit


def test_a_spread_says_where_values_lie():
    found = spread([4.0, 1.0, 3.0, 2.0, 5.0])

    assert (found.count, found.median, found.least, found.most) == (5, 3.0, 1.0, 5.0)
    assert found.p10 == pytest.approx(1.4)
    assert found.p99 == pytest.approx(4.96)


def test_the_best_value_is_the_one_in_the_better_direction():
    found = spread([4.0, 1.0, 3.0])

    assert found.best(Better.LOWER) == 1.0
    assert found.best(Better.HIGHER) == 4.0


def test_one_value_is_its_own_spread():
    found = spread([2.5])

    assert {found.median, found.least, found.most, found.p10, found.p99} == {2.5}


def test_nothing_has_no_spread():
    with pytest.raises(ValueError, match="nothing"):
        spread([])


def test_a_ratio_is_of_medians_and_its_spread_is_of_rounds():
    found = ratio([2.0, 4.0, 6.0], [1.0, 2.0, 4.0])

    assert (found.value, found.low, found.high, found.rounds) == (2.0, 1.5, 2.0, 3)
    assert found.holds(1.5)
    assert not found.holds(1.0)


def test_a_round_in_which_one_side_failed_belongs_to_neither():
    found = ratio([2.0, None, 100.0, 6.0], [1.0, 50.0, None, 3.0])

    assert (found.value, found.low, found.high, found.rounds) == (2.0, 2.0, 2.0, 2)


def test_sides_that_share_no_round_have_no_ratio():
    assert ratio([1.0, None], [None, 1.0]) is None
    assert ratio([], [1.0]) is None


def test_one_bad_round_of_many_is_not_the_spread():
    few = [1.2] * (MIDDLE_FROM_ROUNDS - 2)

    assert ratio([*few, 0.5], [1.0] * (MIDDLE_FROM_ROUNDS - 1)).low == 0.5
    assert ratio([*few, 1.2, 0.5], [1.0] * MIDDLE_FROM_ROUNDS).low == 1.2


def test_each_arm_is_first_in_its_turn():
    names = ("a", "b", "c")

    assert [rotated(names, turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated(names, 1) == ("b", "c", "a")
