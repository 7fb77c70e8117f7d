import itertools

import pytest

from coordinator.facts.proof import Grade, Verdict

pytestmark = pytest.mark.unit


def test_grades_are_ordered_from_an_estimate_to_a_profiled_path():
    grades = [Grade.E, Grade.D, Grade.B, Grade.C, Grade.P]

    assert sorted(reversed(grades)) == grades
    assert all(weaker < stronger for weaker, stronger in itertools.combinations(grades, 2))
    assert min(Grade.P, Grade.B) is Grade.B


def test_a_grade_does_not_compare_with_anything_else():
    with pytest.raises(TypeError):
        assert Grade.E < 3


def test_verdicts_are_spelled_as_in_the_wire():
    assert Verdict("wrong_numbers") is Verdict.WRONG_NUMBERS
    assert [verdict.value for verdict in Verdict] == [verdict.name.lower() for verdict in Verdict]
