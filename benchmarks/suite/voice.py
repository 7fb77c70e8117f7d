"""`voice`: a spoken question answered aloud, by the product and by one process without it."""

from argparse import ArgumentParser, Namespace
from typing import Final

from benchmarks.judging.declarations import (
    SUBJECT,
    Benchmark,
    Better,
    Cell,
    Comparison,
    Metric,
    Part,
    Step,
    python_arm,
)

WALL_LIMIT: Final = 1.10
FIRST_LIMIT: Final = 0.6
MEMORY_LIMIT: Final = 1.35
REFERENCE: Final = "reference"
_ARMS: Final = "benchmarks.arms.voice"
_MEMORY_ROUNDS: Final = 5
_START_SECONDS: Final = 900.0
"""Time for the first start, which may build environments and fetch models."""


def parts(options: Namespace) -> tuple[Part, ...]:
    """Returns the starts, each a process of its own, and the answers of arms that stay loaded."""
    settings = {"is_agreed": options.yes}
    product = python_arm(f"{_ARMS}:product", "coordinator and workers", **settings)
    starts = python_arm(f"{_ARMS}:starting", product.title, **settings)
    reference = python_arm(f"{_ARMS}:reference", "one process", **settings)
    return (
        # Its warm-up fills the caches, which the other arms need too.
        Part({SUBJECT: starts}, (Step("start", options.starts),), True, _START_SECONDS),
        Part(
            {SUBJECT: product, REFERENCE: reference},
            (
                Step("answer", options.rounds),
                # Sampling costs CPU time, so that memory has rounds of its own.
                Step("memory", min(options.rounds, _MEMORY_ROUNDS), 0),
            ),
            timeout_seconds=300.0,
        ),
    )


def add_options(parser: ArgumentParser) -> None:
    """Adds what only this benchmark has."""
    parser.add_argument("--starts", type=int, default=5, help="measured starts of the product")
    parser.add_argument("--yes", action="store_true", help="download what is missing")


_METRICS: Final = (
    Metric("wall", "Wall time", "s", band=0.10, is_charted=True),
    Metric("first", "First sample", "s", band=0.10, is_charted=True),
    Metric("steady", "Memory, steady", "MiB", digits=0, band=0.03, is_charted=True),
    Metric("peak", "Memory, peak", "MiB", digits=0, band=0.05),
    Metric("ready", "READY", "s", band=0.12, is_charted=True),
    Metric("ready_limit", "Limit of READY", "s", Better.NEITHER),
    Metric("endpoint", "Start until the endpoint", "s"),
    Metric("work", "Work of the slowest worker", "s", Better.NEITHER),
    Metric("hear", "Stage hear, busy", "s"),
    Metric("answer", "Stage answer, busy", "s"),
    Metric("speak", "Stage speak, busy", "s"),
    Metric("tokens", "Tokens of the answer", "", Better.NEITHER, digits=0),
    Metric("coordinator_cpu", "Coordinator's CPU, an answer", "ms", digits=0),
    Metric("coordinator_memory", "Coordinator's memory", "MiB", digits=0),
)

BENCHMARK: Final = Benchmark(
    name="voice",
    title="A spoken question, answered aloud",
    metrics=_METRICS,
    comparisons=(
        Comparison(
            "wall", "Wall time", Cell("wall"), Cell("wall", REFERENCE), WALL_LIMIT, band=0.08
        ),
        Comparison("first", "First sample", Cell("first"), Cell("first", REFERENCE), band=0.08),
        Comparison(
            "first_by_total",
            "First sample by the reference's total",
            Cell("first"),
            Cell("wall", REFERENCE),
            FIRST_LIMIT,
            band=0.08,
        ),
        Comparison(
            "steady",
            "Worker memory, steady",
            Cell("steady"),
            Cell("steady", REFERENCE),
            MEMORY_LIMIT,
            band=0.03,
        ),
        Comparison(
            "peak",
            "Worker memory, peak",
            Cell("peak"),
            Cell("peak", REFERENCE),
            MEMORY_LIMIT,
            band=0.05,
        ),
        Comparison(
            "ready",
            "READY by its limit (1.3 x the slowest worker's work + 1 s)",
            Cell("ready"),
            Cell("ready_limit"),
            1.0,
            band=0.12,
        ),
    ),
    parts=parts,
    rounds=7,
    add_options=add_options,
    reach="workers",
)
