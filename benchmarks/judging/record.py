"""The record of one run: everything that tables, verdicts, plots and bands are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks.judging.declarations import Better, Cell, Comparison, Metric

SCHEMA: Final = 1
Series = Mapping[str, Mapping[str, Sequence[float | None]]]
"""Values by metric and arm, one a round; None where the round failed."""


class RecordUnreadableError(Exception):
    """A file is no record, or one of another version."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One turn that failed."""

    arm: str
    step: str
    round: int
    """From 1; 0 for a warm-up."""
    text: str


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What else the machine did during the turns of one step of one arm; cores, one a turn."""

    arm: str
    step: str
    idle: tuple[float, ...]
    """Used by the arms that had nothing to do."""
    others: tuple[float, ...]
    """Used by processes that are no part of the benchmark."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run."""

    bench: str
    title: str
    started: str
    """Time in UTC, ISO 8601."""
    seconds: float
    arms: Mapping[str, str]
    """Title of each arm by its name."""
    planned: Mapping[str, int]
    """Rounds that were planned, by step."""
    steps: Mapping[str, str]
    """Step of each metric that was measured."""
    metrics: tuple[Metric, ...]
    comparisons: tuple[Comparison, ...]
    series: Series
    failures: tuple[Failure, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    notes: tuple[str, ...] = ()
    knob: Mapping[str, str] = field(default_factory=dict)
    """Of `bench ab`: what was changed, its settings `A` and `B`, and the proof that it arrived."""
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON
    """What each arm said of itself."""
    provenance: Mapping[str, Any] = field(default_factory=dict)  # JSON
    preflight: Mapping[str, Any] = field(default_factory=dict)  # JSON

    def values(self, cell: Cell) -> Sequence[float | None]:
        """Returns one value a round, or nothing where the arm did not measure this."""
        return self.series.get(cell.metric, {}).get(cell.arm, ())

    def metric(self, name: str) -> Metric:
        """Returns the declaration of a metric."""
        return next(item for item in self.metrics if item.name == name)

    def failed_rounds(self, arm: str, step: str) -> int:
        """Returns how many rounds of an arm failed, warm-ups apart."""
        return sum(
            item.arm == arm and item.step == step and item.round > 0 for item in self.failures
        )


def to_json(record: Record) -> dict[str, Any]:  # JSON
    """Returns a record as it is written to a file."""
    content = asdict(record)
    for metric in content["metrics"]:
        metric["better"] = metric["better"].value
    return {"schema": SCHEMA, **content}


def from_json(content: Any) -> Record:  # JSON
    """Returns the record of a file.

    Raises:
        RecordUnreadableError: it is none of this version.
    """
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise RecordUnreadableError(f"this is no record of version {SCHEMA}")
    fields = {name: value for name, value in content.items() if name != "schema"}
    try:
        fields["metrics"] = tuple(
            Metric(**item | {"better": Better(item["better"])}) for item in fields["metrics"]
        )
        fields["comparisons"] = tuple(
            Comparison(**item | {side: Cell(**item[side]) for side in ("over", "under")})
            for item in fields["comparisons"]
        )
        fields["failures"] = tuple(Failure(**item) for item in fields["failures"])
        fields["disturbances"] = tuple(
            Disturbance(item["arm"], item["step"], tuple(item["idle"]), tuple(item["others"]))
            for item in fields["disturbances"]
        )
        fields["notes"] = tuple(fields["notes"])
        return Record(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordUnreadableError(f"the record cannot be read: {error}") from None
