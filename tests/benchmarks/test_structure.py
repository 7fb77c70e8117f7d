"""What decides does not act, and declarations fit together."""

import ast
from argparse import ArgumentParser
from pathlib import Path

import pytest

import benchmarks
from benchmarks.judging.declarations import SUBJECT
from benchmarks.suite import BENCHMARKS

pytestmark = pytest.mark.unit

ROOT = Path(benchmarks.__file__).parent
ACTING = {
    "asyncio",
    "grpc",
    "os",
    "psutil",
    "random",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
LONGEST_MODULE = 300


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", sorted((ROOT / "judging").glob("*.py")), ids=lambda p: p.stem)
def test_what_decides_has_no_clock_no_process_and_no_product(path):
    names = set(imported(path))

    assert not {name.partition(".")[0] for name in names} & {*ACTING, "coordinator", "stagewire"}
    assert (
        not {name for name in names if name.startswith("benchmarks.")}
        - {name for name in names if name.startswith("benchmarks.judging.")}
        - {"benchmarks.judging"}
    )


def test_modules_are_short():
    long = [
        path for path in ROOT.rglob("*.py") if len(path.read_text().splitlines()) > LONGEST_MODULE
    ]

    assert not long


def options_of(benchmark):
    parser = ArgumentParser()
    benchmark.add_options(parser)
    options = parser.parse_args([])
    options.rounds = benchmark.rounds
    return options


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS.keys())
def test_what_a_benchmark_compares_is_what_it_measures(benchmark):
    parts = benchmark.parts(options_of(benchmark))
    arms = {name for part in parts for name in part.arms}
    metrics = {metric.name for metric in benchmark.metrics}

    assert SUBJECT in arms
    for item in benchmark.comparisons:
        assert {item.over.arm, item.under.arm} <= arms
        assert {item.over.metric, item.under.metric} <= metrics
    assert len(metrics) == len(benchmark.metrics)


def limits(name):
    return {item.name: item.limit for item in BENCHMARKS[name].comparisons if item.limit}


def test_what_is_promised():
    assert limits("voice") == {
        "wall": 1.10,
        "first_by_total": 0.6,
        "steady": 1.35,
        "peak": 1.35,
        "ready": 1.0,
    }
    assert limits("hop") == {"hop": 1.5}
    assert limits("unary") == {"call": 1.5}
    assert limits("import") == {"package": 1.2, "help": 1.3}
