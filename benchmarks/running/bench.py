"""One run of a benchmark, from its parts to its record."""

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.judging.declarations import Benchmark, Comparison, Part
from benchmarks.judging.quiet import Preflight
from benchmarks.judging.record import Record
from benchmarks.running import provenance
from benchmarks.running.rounds import Conditions, Turns, take_turns


def run(
    benchmark: Benchmark, options: Namespace, conditions: Conditions, preflight: Preflight
) -> Record:
    """Runs every part of a benchmark; returns the record.

    Raises:
        RunStoppedError: it cannot come to figures.
    """
    parts = benchmark.parts(options)
    return measure(benchmark, parts, benchmark.comparisons, conditions, preflight)


def measure(
    benchmark: Benchmark,
    parts: Sequence[Part],
    comparisons: tuple[Comparison, ...],
    conditions: Conditions,
    preflight: Preflight,
) -> Record:
    """Has the arms of some parts take turns; returns the record.

    Raises:
        RunStoppedError: it cannot come to figures.
    """
    started, start = provenance.now(), time.perf_counter()
    origin = provenance.gather()
    turns = [
        take_turns(part, replace(conditions, folder=conditions.folder / str(number)))
        for number, part in enumerate(parts)
    ]
    whole = _together(turns)
    return Record(
        bench=benchmark.name,
        title=benchmark.title,
        started=started,
        seconds=round(time.perf_counter() - start, 1),
        arms={name: arm.title for part in parts for name, arm in part.arms.items()},
        planned=whole.planned,
        steps=whole.steps,
        metrics=benchmark.metrics,
        comparisons=comparisons,
        series=whole.series,
        failures=tuple(whole.failures),
        disturbances=tuple(whole.disturbances),
        notes=tuple(whole.notes),
        facts=whole.facts,
        provenance=origin | {"versions": _versions(origin["versions"], whole.facts)},
        preflight=_shown(preflight),
    )


def _together(turns: Sequence[Turns]) -> Turns:
    whole = Turns()
    for item in turns:
        for metric, arms in item.series.items():
            whole.series.setdefault(metric, {}).update(arms)
        for name, facts in item.facts.items():
            whole.facts[name] = {**whole.facts.get(name, {}), **facts}
        whole.steps |= item.steps
        whole.planned |= item.planned
        whole.failures += item.failures
        whole.disturbances += item.disturbances
        whole.notes += item.notes
    return whole


def _versions(own: Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, str]:  # JSON
    """Returns the libraries of all arms; those of the bench itself where an arm says nothing."""
    versions = dict(own)
    for said in facts.values():
        versions |= said.get("versions", {})
    return versions


def _shown(preflight: Preflight) -> dict[str, Any]:  # JSON
    return {
        "is_quiet": preflight.is_quiet,
        "reason": preflight.reason,
        "load": round(preflight.load, 2),
        "cores": {
            str(core): {"busy": round(item.busy, 3), "stolen": round(item.stolen, 3)}
            for core, item in preflight.cores.items()
        },
        "busiest": [
            {"name": item.name, "cores": round(item.cores, 3)} for item in preflight.busiest
        ],
    }
