"""Records, benchmarks and arms to test the bench with."""

import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judging.declarations import (
    ArmSpec,
    Benchmark,
    Better,
    Cell,
    Comparison,
    Metric,
    Part,
    Step,
)
from benchmarks.judging.record import Record

METRICS = (
    Metric("time", "Time", "ms", is_charted=True, band=0.10),
    Metric("rate", "Rate", "items/s", Better.HIGHER, digits=0),
)
COMPARISONS = (
    Comparison("time", "Time by floor", Cell("time"), Cell("time", "floor"), 1.5, band=0.10),
    Comparison("rate", "Rate by floor", Cell("rate"), Cell("rate", "floor")),
)


@pytest.fixture
def make_record() -> Callable[..., Record]:
    def make(time: dict[str, list[float | None]] | None = None, **fields: Any) -> Record:
        series = {"time": time or {"product": [2.0] * 5, "floor": [2.0] * 5}}
        rounds = max(len(values) for values in series["time"].values())
        made: dict[str, Any] = {
            "bench": "toy",
            "title": "A toy",
            "started": "2026-01-02T03:04:05+00:00",
            "seconds": 1.5,
            "arms": {"product": "ours", "floor": "theirs"},
            "planned": {"turn": rounds},
            "steps": {"time": "turn", "rate": "turn"},
            "metrics": METRICS,
            "comparisons": COMPARISONS,
            "series": series,
            "provenance": {
                "commit": "0123456789abcdef",
                "is_dirty": False,
                "processor": "Abacus",
                "cores": 2,
                "affinity": [0, 1],
                "memory": "24 GiB",
                "system": "Linux 6",
                "versions": {"numpy": "2.4"},
            },
            "preflight": {"is_quiet": True, "reason": ""},
        }
        return Record(**made | fields)

    return make


LOOP = """
import json, os, sys, time
settings = json.loads(sys.argv[-1])
def tell(**event):
    print(json.dumps(event), flush=True)
def done(**more):
    tell(event="done", metrics={"time": float(settings.get("time", 1.0))}, **more)
"""


@pytest.fixture
def make_arm(tmp_path: Path) -> Callable[..., ArmSpec]:
    """Makes an arm of a few lines of Python, by default one that takes its turns."""
    count = 0

    def make(body: str = "", *, ready: str = "tell(event='ready')", **settings: Any) -> ArmSpec:
        nonlocal count
        count += 1
        turn = textwrap.indent(textwrap.dedent(body or "done()"), "    ")
        script = tmp_path / f"arm{count}.py"
        script.write_text(f"{LOOP}\n{ready}\nfor line in sys.stdin:\n{turn}\n", encoding="utf-8")
        return ArmSpec((sys.executable, str(script)), f"arm {count}", settings)

    return make


@pytest.fixture
def make_benchmark(make_arm: Callable[..., ArmSpec]) -> Callable[..., Benchmark]:
    """Makes a benchmark of two arms that take turns."""

    def make(
        product: ArmSpec | None = None, floor: ArmSpec | None = None, **fields: Any
    ) -> Benchmark:
        arms = {"product": product or make_arm(), "floor": floor or make_arm()}
        part: dict[str, Any] = {"timeout_seconds": 60.0, "settle_seconds": 0.0}
        part |= {key: fields.pop(key) for key in ("is_fresh", "timeout_seconds") if key in fields}

        def parts(options: Namespace) -> tuple[Part, ...]:
            return (Part(arms, (Step("turn", options.rounds),), **part),)

        return Benchmark("toy", "A toy", METRICS, COMPARISONS, parts, rounds=5, **fields)

    return make
