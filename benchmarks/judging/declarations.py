"""What a benchmark declares: arms, steps, metrics, comparisons and their limits."""

import enum
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ENTRY: Final = "benchmarks.arms.entry"
SUBJECT: Final = "product"
"""Name of the arm that is the product itself."""
ARM_ROLE: Final = "arm"
"""Role of the process of an arm itself."""


class Better(enum.Enum):
    """Which direction of a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity that arms measure once a round, already in its unit."""

    name: str
    title: str
    unit: str
    better: Better = Better.LOWER
    digits: int = 2
    band: float | None = None
    """Share by which it may be worse than in the last kept record; of the same machine alone."""
    is_charted: bool = False

    @property
    def heading(self) -> str:
        """Its title with its unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one arm."""

    metric: str
    arm: str = SUBJECT


@dataclass(frozen=True, slots=True)
class Comparison:
    """One series by another."""

    name: str
    title: str
    over: Cell
    under: Cell
    limit: float | None = None
    """What the ratio must not exceed; must not fall below where higher is better."""
    band: float | None = None
    """Share by which the ratio may be worse than in the last kept record."""


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One side of a comparison: a command that runs in its own process and prints JSON lines."""

    command: tuple[str, ...]
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON
    """Last argument of the command, as JSON, with the `folder` that the arm may write to."""
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Environment variables beside those of the bench; None removes one."""
    folder: Path | None = None
    """Where it is started; None for where the bench was."""


@dataclass(frozen=True, slots=True)
class Step:
    """What arms are ordered to do, once a round each in turns."""

    name: str
    rounds: int
    warm_ups: int = 1
    """Turns of each new process that do not count."""


@dataclass(frozen=True, slots=True)
class Part:
    """Arms that take turns."""

    arms: Mapping[str, ArmSpec]
    steps: tuple[Step, ...]
    is_fresh: bool = False
    """Whether every turn has a process of its own; otherwise the arms stay, loaded and waiting."""
    timeout_seconds: float = 120.0
    """Time for one turn, and for the start of an arm, after which it counts as hung."""
    settle_seconds: float = 0.1
    """Pause between turns, in which the last one may finish what it does afterwards."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark; its module in `benchmarks.suite` declares it."""

    name: str
    title: str
    metrics: tuple[Metric, ...]
    comparisons: tuple[Comparison, ...]
    parts: Callable[[Namespace], tuple[Part, ...]]
    """Makes the parts of the options of the command line."""
    rounds: int
    """Unless the command line says otherwise."""
    add_options: Callable[[ArgumentParser], None] = lambda _: None
    reach: str = ARM_ROLE
    """Role of the processes that a changed variable must reach, unless the command line says."""
    proofs: Mapping[str, str] = field(default_factory=dict)
    """Facts that show fields of the plan, by a pattern of the field's path; see `proofs`."""


def python_arm(entry: str, title: str, **settings: Any) -> ArmSpec:  # JSON
    """Returns an arm that is a function of a module, such as `benchmarks.suite.hop:product`."""
    return ArmSpec((sys.executable, "-m", ENTRY, entry), title, settings)
