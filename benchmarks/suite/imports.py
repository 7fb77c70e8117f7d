"""`import`: what the product costs a program that only begins, in fresh interpreters."""

import contextlib
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.arms.entry import Settings, Turn
from benchmarks.judging.declarations import (
    SUBJECT,
    Benchmark,
    Cell,
    Comparison,
    Metric,
    Part,
    Step,
    python_arm,
)
from benchmarks.judging.figures import spread

IMPORT_LIMIT: Final = 1.2
HELP_LIMIT: Final = 1.3
_FLOOR: Final = "floor"
_SUBJECT_COMMANDS: Final = {
    "package": ("-c", "import stagewire.client"),
    "client": ("-c", "from stagewire.client import Client"),
    "help": ("-m", "coordinator.cli.main", "--help"),
}
_FLOOR_COMMANDS: Final = {
    "package": ("-c", "import grpc, numpy"),
    "help": ("-m", "benchmarks.arms.typer_floor", "--help"),
}


@dataclass(slots=True)
class Interpreters:
    """Starts fresh interpreters, one after another."""

    commands: Mapping[str, Sequence[str]]
    count: int
    roles: Mapping[str, Sequence[int]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def perform(self, step: str) -> Turn:
        """Runs each command some times; the median stands for the round."""
        times: dict[str, list[float]] = {name: [] for name in self.commands}
        for _ in range(self.count):
            for name, words in self.commands.items():
                start = time.perf_counter()
                subprocess.run(
                    [sys.executable, *words], check=True, stdout=subprocess.DEVNULL, timeout=60
                )
                times[name].append((time.perf_counter() - start) * 1e3)
        return Turn({name: spread(values).median for name, values in times.items()})


@contextlib.contextmanager
def product(settings: Settings) -> Iterator[Interpreters]:
    """Starts the product."""
    yield Interpreters(_SUBJECT_COMMANDS, settings["count"])


@contextlib.contextmanager
def floor(settings: Settings) -> Iterator[Interpreters]:
    """Starts what the product stands on."""
    yield Interpreters(_FLOOR_COMMANDS, settings["count"])


def parts(options: Namespace) -> tuple[Part, ...]:
    """Returns both arms; each turn is of fresh interpreters, the arms themselves stay."""
    arms = {
        SUBJECT: python_arm(f"{__name__}:product", "the product", count=options.batch),
        _FLOOR: python_arm(f"{__name__}:floor", "what it stands on", count=options.batch),
    }
    return (Part(arms, (Step("starts", options.rounds),)),)


def add_options(parser: ArgumentParser) -> None:
    """Adds what only this benchmark has."""
    parser.add_argument("--batch", type=int, default=5, help="interpreters of a round")


BENCHMARK: Final = Benchmark(
    name="import",
    title="Fresh interpreters",
    metrics=(
        Metric(
            "package",
            "`import stagewire.client`, or `import grpc, numpy`",
            "ms",
            digits=0,
            is_charted=True,
        ),
        Metric("client", "`from stagewire.client import Client`", "ms", digits=0),
        Metric(
            "help",
            "`coordinator --help`, or that of two commands",
            "ms",
            digits=0,
            is_charted=True,
        ),
    ),
    comparisons=(
        Comparison(
            "package",
            "`import stagewire.client` by `import grpc, numpy`",
            Cell("package"),
            Cell("package", _FLOOR),
            IMPORT_LIMIT,
            band=0.15,
        ),
        Comparison(
            "client",
            "the same with the name `Client`, which loads gRPC",
            Cell("client"),
            Cell("package", _FLOOR),
            band=0.10,
        ),
        Comparison(
            "help",
            "`coordinator --help` by a Typer program of two commands",
            Cell("help"),
            Cell("help", _FLOOR),
            HELP_LIMIT,
            band=0.10,
        ),
    ),
    parts=parts,
    rounds=20,
    add_options=add_options,
)
