from argparse import Namespace
from dataclasses import replace

import pytest

from benchmarks.judging.proofs import Knob, NotProvenError
from benchmarks.judging.quiet import Core, Preflight
from benchmarks.running import comparing
from benchmarks.running.rounds import Conditions

pytestmark = pytest.mark.integration

QUIET = Preflight({0: Core(0.0, 0.0)}, (), 0.0)
BY_VARIABLE = "settings['time'] = float(os.environ['KNOB'])"
CHILD = """
import subprocess
passed_on = {key: value for key, value in os.environ.items() if key != "KNOB"}
code = "print(1, flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", code], env=passed_on, stdin=-1, stdout=-1)
child.stdout.readline()
done(roles={"workers": [child.pid]})
"""


@pytest.fixture
def compare(tmp_path):
    said = []

    def run(benchmark, knob):
        conditions = Conditions(tmp_path / "arms", said.append)
        return comparing.run(benchmark, Namespace(rounds=5), knob, conditions, QUIET)

    run.said = said
    return run


def test_two_settings_of_a_variable_are_compared_once_they_are_proven(
    compare, make_benchmark, make_arm
):
    product = make_arm(f"{BY_VARIABLE}\ndone()")

    record = compare(make_benchmark(product), Knob("env", "KNOB", ("1", "3")))

    assert record.series == {"time": {"A": [1.0] * 5, "B": [3.0] * 5}}
    assert record.knob == {
        "title": "variable KNOB",
        "A": "1",
        "B": "3",
        "proof": "/proc/PID/environ of arm: 1 and 1 processes",
    }
    assert "proven: /proc/PID/environ of arm: 1 and 1 processes" in compare.said


def test_a_variable_that_does_not_reach_its_process_is_refused(compare, make_benchmark, make_arm):
    benchmark = make_benchmark(make_arm(CHILD))
    knob = Knob("env", "KNOB", ("1", "3"), reach="workers")

    with pytest.raises(NotProvenError, match="KNOB did not reach the workers of arm A"):
        compare(benchmark, knob)


def test_settings_that_are_the_same_are_refused(compare, make_benchmark):
    with pytest.raises(NotProvenError, match="nothing to compare"):
        compare(make_benchmark(), Knob("env", "KNOB", ("1", "1")))


def test_a_field_of_the_plan_is_compared_once_it_shows(compare, make_benchmark, make_arm):
    product = make_arm(
        "threads = settings['fields']['stages.one.threads']\n"
        "done(facts={'stages': {'one': {'threads': threads}}}, outcome=threads)"
    )

    record = compare(make_benchmark(product), Knob("field", "stages.one.threads", ("1", "2")))

    assert record.knob["proof"] == "stages.one.threads: 1 and 2"
    assert record.notes == ("the arms do different work: A 1, B 2",)


def test_a_field_that_does_not_show_is_refused(compare, make_benchmark, make_arm):
    product = make_arm("done(facts={'stages': {'one': {'threads': 1}}})")

    with pytest.raises(NotProvenError, match="changed nothing"):
        compare(make_benchmark(product), Knob("field", "stages.one.threads", ("1", "2")))


def test_fresh_arms_are_proven_too(compare, make_benchmark, make_arm):
    fresh = make_benchmark(make_arm(CHILD), is_fresh=True)

    with pytest.raises(NotProvenError, match="did not reach the workers"):
        compare(fresh, Knob("env", "KNOB", ("1", "3"), reach="workers"))


def test_a_revision_that_is_none_is_refused(compare, make_benchmark):
    with pytest.raises(NotProvenError, match="no revision"):
        compare(make_benchmark(), Knob("revision", "", ("HEAD", "no-such-revision")))


def test_revisions_with_the_same_product_are_refused(compare, make_benchmark):
    with pytest.raises(NotProvenError, match="the same product"):
        compare(make_benchmark(), Knob("revision", "", ("HEAD", "HEAD^{commit}")))


def test_the_floor_takes_no_part(compare, make_benchmark, make_arm):
    benchmark = make_benchmark(floor=make_arm(ready="sys.exit('started')"))

    record = compare(benchmark, Knob("env", "KNOB", ("1", "3")))

    assert record.arms == {"A": "variable KNOB 1", "B": "variable KNOB 3"}
    assert replace(record, series={}).failures == ()
