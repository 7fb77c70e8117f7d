"""What `voice` concludes and prints. Pure."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks import report
from benchmarks.figures import Comparison, Criterion, compare, comparison_json, criterion_json
from benchmarks.readiness import FACTOR, medians
from benchmarks.voice import SIDES, Measured

SPINNING_CORES: Final = 0.1
"""CPU time of a side that should be idle from which something spins."""
NOISY_CORES: Final = 0.2
"""CPU time of others from which a round says little."""
WALL_LIMIT: Final = 1.10
FIRST_LIMIT: Final = 0.6
MEMORY_LIMIT: Final = 1.35
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Figures of one run of `voice`."""

    comparisons: Mapping[str, tuple[Comparison, str]]
    """With their units."""
    criteria: tuple[Criterion, ...]
    coordinator_cpu_per_1000_tokens: float
    notes: tuple[str, ...]
    """What a reader must hold against the figures."""


def conclude(measured: Measured) -> Conclusion:
    """Returns what was found out."""
    turns = measured.turns
    wall = compare(*([turn.answered.seconds for turn in turns[side]] for side in SIDES))
    first = compare(*([turn.answered.first_seconds for turn in turns[side]] for side in SIDES))
    start = medians(measured.starts)
    product, reference = (measured.residents[side] for side in SIDES)
    cpu = statistics.mean(turn.cpu["coordinator"] for turn in turns["product"])
    criteria = (
        Criterion("wall time by reference", wall.ratio, WALL_LIMIT),
        Criterion(
            "first sample by reference's total",
            first.product.median / wall.reference.median,
            FIRST_LIMIT,
        ),
        Criterion(
            "worker memory, steady, by reference",
            product.steady.total_bytes / reference.steady.total_bytes,
            MEMORY_LIMIT,
        ),
        Criterion(
            "worker memory, peak, by reference",
            product.peak_bytes / reference.peak_bytes,
            MEMORY_LIMIT,
        ),
        Criterion(
            f"READY, caches warm ({FACTOR} x slowest worker's work + 1 s)",
            start.ready,
            statistics.median(item.limit for item in measured.starts),
            "s",
        ),
    )
    return Conclusion(
        {"wall time": (wall, "s"), "first sample": (first, "s")},
        criteria,
        cpu / measured.tokens * 1000,
        tuple(_notes(measured)),
    )


def _notes(measured: Measured) -> list[str]:
    turns = [turn for side in SIDES for turn in measured.turns[side]]
    idle = max(turn.idle_cores for turn in turns)
    others = [turn.other_cores for turn in turns]
    notes = []
    if idle > SPINNING_CORES:
        notes.append(f"the side that had nothing to do used up to {idle:.2f} cores")
    noisy = sum(item > NOISY_CORES for item in others)
    if noisy:
        notes.append(
            f"other processes used up to {max(others):.2f} cores; turns disturbed: {noisy}"
        )
    return notes


def lines(measured: Measured, conclusion: Conclusion) -> str:
    """Returns the readable report."""
    parts = (
        report.comparison_table(conclusion.comparisons),
        _memory_table(measured),
        _start_table(measured),
        _stage_table(measured),
        f"coordinator: {conclusion.coordinator_cpu_per_1000_tokens:.2f} s of CPU per 1,000 tokens,"
        f" {measured.coordinator_memory.anonymous_bytes / _MIB:.0f} MiB",
        *(f"note: {note}" for note in conclusion.notes),
        report.criteria_table(conclusion.criteria),
    )
    return "\n\n".join(parts)


def to_json(measured: Measured, conclusion: Conclusion) -> dict[str, Any]:  # JSON
    """Returns everything, for a report file."""
    return {
        "tokens": measured.tokens,
        "comparisons": {
            name: comparison_json(item) for name, (item, _) in conclusion.comparisons.items()
        },
        "criteria": [criterion_json(item) for item in conclusion.criteria],
        "coordinator_cpu_seconds_per_1000_tokens": conclusion.coordinator_cpu_per_1000_tokens,
        "notes": conclusion.notes,
        "starts": [asdict(item) for item in measured.starts],
        "turns": {side: [asdict(turn) for turn in measured.turns[side]] for side in SIDES},
        "residents": {side: asdict(measured.residents[side]) for side in SIDES},
        "coordinator_memory": asdict(measured.coordinator_memory),
        "reference_loads": measured.loaded,
    }


def _memory_table(measured: Measured) -> str:
    sides = [measured.residents[side] for side in SIDES]
    rows = {
        "anonymous, steady": [item.steady.anonymous_bytes for item in sides],
        "model files, steady": [item.steady.model_bytes for item in sides],
        "together, steady": [item.steady.total_bytes for item in sides],
        "together, peak": [item.peak_bytes for item in sides],
    }
    return report.table(
        ("memory, MiB", "workers", "reference", "ratio"),
        [
            (
                name,
                f"{values[0] / _MIB:.0f}",
                f"{values[1] / _MIB:.0f}",
                f"{values[0] / values[1]:.2f}" if values[1] else "-",
            )
            for name, values in rows.items()
        ],
    )


def _start_table(measured: Measured) -> str:
    start = medians(measured.starts)
    rows = [(f"until {name}", f"{at:.2f} s") for name, at in start.timeline.items()]
    rows += [
        (
            f"work of {worker}",
            f"{start.interpreters[worker]:.2f} s interpreter + {load:.2f} s loads",
        )
        for worker, load in start.loads.items()
    ]
    return report.table((f"start, median of {len(measured.starts)}", ""), rows)


def _stage_table(measured: Measured) -> str:
    """Busy time of each stage; marks of the reference are sums, hence the differences."""
    product = measured.turns["product"]
    names = list(product[0].stages)
    reference = measured.turns["reference"]
    rows = []
    before = 0.0
    for name in names:
        busy = statistics.median(turn.stages[name] for turn in product)
        mark = reference[0].stages.get(name)
        own = "-"
        if mark is not None:
            until = statistics.median(turn.stages[name] for turn in reference)
            own, before = f"{until - before:.2f} s", until
        rows.append((name, f"{busy:.2f} s", own))
    return report.table(("stage, median busy time", "product", "reference"), rows)
