from dataclasses import replace

import pytest

from benchmarks.judging.declarations import Better, Cell, Comparison, Metric
from benchmarks.judging.record import Disturbance, Failure
from benchmarks.judging.verdicts import Word, is_missed, is_open, judge, remarks

pytestmark = pytest.mark.unit


def test_a_limit_is_kept_at_the_limit(make_record):
    record = make_record({"product": [3.0] * 5, "floor": [2.0] * 5})

    (found,) = judge(record)

    assert (found.word, found.limit_word) == (Word.WORSE, Word.PASS)
    assert not is_missed([found])
    assert not is_open([found])


def test_a_limit_can_be_missed(make_record):
    (found,) = judge(make_record({"product": [3.1] * 5, "floor": [2.0] * 5}))

    assert found.limit_word is Word.MISSED
    assert is_missed([found])


def test_a_limit_inside_the_spread_is_said(make_record):
    times = {"product": [2.0, 2.9, 2.9, 2.9, 3.2], "floor": [2.0] * 5}

    (found,) = judge(make_record(times))

    assert found.limit_word is Word.PASS
    assert found.reason == "the limit lies inside the spread"


@pytest.mark.parametrize(
    ("product", "word"),
    [
        ([1.0, 1.1, 1.2, 1.3, 1.9], Word.BETTER),
        ([1.0, 1.1, 1.2, 1.3, 2.1], Word.NO_DIFFERENCE),
        ([2.1, 2.1, 2.2, 2.3, 2.4], Word.WORSE),
    ],
)
def test_nothing_is_ranked_inside_the_spread(make_record, product, word):
    (found,) = judge(make_record({"product": product, "floor": [2.0] * 5}))

    assert found.word is word


def test_more_is_better_where_the_metric_says_so(make_record):
    rate = {"product": [3.0] * 5, "floor": [2.0] * 5}
    limited = Comparison("rate", "Rate", Cell("rate"), Cell("rate", "floor"), 1.6)
    record = make_record(series={"rate": rate}, comparisons=(limited,), planned={"turn": 5})

    (found,) = judge(record)

    assert (found.word, found.limit_word) == (Word.BETTER, Word.MISSED)


def test_few_rounds_get_no_verdict(make_record):
    (found,) = judge(make_record({"product": [9.0] * 4, "floor": [1.0] * 4}))

    assert (found.word, found.limit_word) == (Word.NO_VERDICT, Word.NO_VERDICT)
    assert found.reason == "4 of at least 5 rounds"
    assert is_open([found])


def test_too_many_failed_rounds_get_no_verdict(make_record):
    times = {"product": [1.0] * 8 + [None, None], "floor": [1.0] * 10}
    failed = (Failure("product", "turn", 9, "gone"), Failure("product", "turn", 10, "gone"))

    (found,) = judge(make_record(times, failures=failed))
    assert found.limit_word is Word.PASS

    (found,) = judge(
        make_record(times, failures=(*failed, Failure("product", "turn", 1, "gone again")))
    )
    assert found.limit_word is Word.NO_VERDICT
    assert found.reason == "3 of 10 rounds of product failed"


def test_a_failed_warm_up_is_no_failed_round(make_record):
    failed = tuple(Failure("product", "turn", 0, "cold") for _ in range(5))

    (found,) = judge(make_record(failures=failed))

    assert found.limit_word is Word.PASS


def test_an_arm_without_any_value_gets_no_verdict(make_record):
    (found,) = judge(make_record({"floor": [1.0] * 5}))

    assert found.limit_word is Word.NO_VERDICT
    assert found.reason == "no round has both sides"


def test_what_was_not_measured_at_all_is_not_listed(make_record):
    assert [item.comparison.name for item in judge(make_record())] == ["time"]


def test_a_comparison_may_be_of_different_metrics(make_record):
    ready = Comparison("ready", "READY", Cell("ready"), Cell("limit"), 1.0)
    metrics = (Metric("ready", "READY", "s"), Metric("limit", "Limit", "s", Better.NEITHER))
    record = make_record(
        series={"ready": {"product": [2.9] * 5}, "limit": {"product": [3.0] * 5}},
        metrics=metrics,
        comparisons=(ready,),
        steps={"ready": "start", "limit": "start"},
        planned={"start": 5},
    )

    (found,) = judge(record)

    assert found.limit_word is Word.PASS


def test_what_disturbs_a_run_is_said(make_record):
    record = make_record(
        disturbances=(Disturbance("product", "turn", (0.5, 0.0), (0.7, 0.1)),),
        failures=(Failure("floor", "turn", 2, "it ended by SIGKILL\nlog\nlast words"),),
        notes=("a note",),
        preflight={"is_quiet": False, "reason": "core 1 is busy"},
    )
    dirty = replace(record, provenance={**record.provenance, "is_dirty": True})

    assert remarks(dirty) == (
        "a note",
        "arms that had nothing to do used up to 0.50 cores",
        "other processes used up to 0.70 cores; turns disturbed: 1 of 2",
        "the machine was busy before the run: core 1 is busy",
        "the checkout had uncommitted changes",
        "failed turns of floor in turn: 1; the first said: it ended by SIGKILL (last words)",
    )


def test_a_clean_run_needs_no_remarks(make_record):
    assert remarks(make_record()) == ()
