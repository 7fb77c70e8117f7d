"""The bench with the product as it really runs; what is measured is never judged here."""

from argparse import Namespace

import pytest

from benchmarks.judging.proofs import Knob, NotProvenError
from benchmarks.judging.quiet import Core, Preflight
from benchmarks.running import bench, comparing
from benchmarks.running.rounds import Conditions
from benchmarks.suite import BENCHMARKS

pytestmark = pytest.mark.integration

QUIET = Preflight({0: Core(0.0, 0.0)}, (), 0.0)


@pytest.fixture
def conditions(tmp_path):
    return Conditions(tmp_path, lambda _: None)


@pytest.mark.parametrize(
    ("name", "batch"), [("hop", 20), ("unary", 20), ("import", 1)], ids=["hop", "unary", "import"]
)
def test_every_metric_that_is_compared_is_measured(name, batch, conditions):
    benchmark = BENCHMARKS[name]

    record = bench.run(benchmark, Namespace(rounds=1, batch=batch), conditions, QUIET)

    assert not record.failures
    for item in benchmark.comparisons:
        for cell in (item.over, item.under):
            (value,) = record.values(cell)
            assert value > 0
    code = record.facts["product"]["code"]
    assert code["coordinator"].endswith("coordinator/__init__.py")


def test_a_thread_count_from_outside_does_not_reach_workers_and_is_refused(conditions):
    knob = Knob("env", "OMP_NUM_THREADS", ("2", "4"), reach="workers")
    options = Namespace(rounds=1, batch=20)

    with pytest.raises(NotProvenError, match=r"found '1', '1'; it reached arm, coordinator"):
        comparing.run(BENCHMARKS["hop"], options, knob, conditions, QUIET)


def test_a_thread_count_of_the_plan_reaches_its_worker(conditions):
    knob = Knob("field", "stages.first.threads", ("1", "2"))
    options = Namespace(rounds=1, batch=20)

    record = comparing.run(BENCHMARKS["hop"], options, knob, conditions, QUIET)

    assert record.knob["proof"].startswith("stages.first.threads: 1, 1 and ")
    assert record.series["hop"].keys() == {"A", "B"}
