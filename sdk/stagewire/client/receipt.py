"""The receipt of a finished request: where each stage ran, and what it took."""

import enum
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration

from stagewire.v1 import coordinator_pb2 as pb


class Grade(enum.IntEnum):
    """How a claim was obtained, weakest first; the numbers are those of the wire."""

    UNKNOWN = 0
    """Not said, or a word of a newer version."""
    E = 1
    """Estimated."""
    D = 2
    """Read off a document or a system."""
    B = 3
    """The backend ran it."""
    C = 4
    """Numerically checked on the device."""
    P = 5
    """A profiled whole path."""


class Verdict(enum.IntEnum):
    """Outcome of a proof; the numbers are those of the wire."""

    UNKNOWN = 0
    """Not said, or a word of a newer version."""
    ABSENT = 1
    INIT_FAILED = 2
    RUN_FAILED = 3
    NONE = 4
    PARTIAL = 5
    FULL = 6
    WRONG_NUMBERS = 7
    UNMEASURED = 8


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under column names, for whatever prints them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = (self.columns, *self.rows)
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


@dataclass(frozen=True, slots=True)
class StageReceipt:
    """Where one stage ran and what it took; times in seconds, measured by its worker."""

    stage_id: str
    worker_id: str
    device: str
    incarnation: int
    verdict: Verdict
    grade: Grade
    queued_seconds: float | None
    busy_seconds: float | None
    """Time inside the executor, less its waits."""
    first_output_seconds: float | None
    """Time between its start and its first output; None when there was no output."""
    total_seconds: float | None
    input_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class HopReceipt:
    """What crossed one edge."""

    source: str
    target: str
    transport: str
    items: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a finished request reports; times in seconds, measured by the coordinator."""

    request_id: str
    total_seconds: float | None
    first_output_seconds: float | None
    """Time until the first output item left; None when there was none."""
    stages: tuple[StageReceipt, ...]
    hops: tuple[HopReceipt, ...]

    def table(self) -> Table:
        """Returns one row for each stage."""
        return Table(
            (
                "stage",
                "worker",
                "device",
                "verdict",
                "grade",
                "queued",
                "busy",
                "first output",
                "total",
                "bytes in",
                "bytes out",
            ),
            tuple(
                (
                    stage.stage_id,
                    stage.worker_id,
                    stage.device,
                    stage.verdict.name.lower(),
                    stage.grade.name,
                    _milliseconds(stage.queued_seconds),
                    _milliseconds(stage.busy_seconds),
                    _milliseconds(stage.first_output_seconds),
                    _milliseconds(stage.total_seconds),
                    str(stage.input_bytes),
                    str(stage.output_bytes),
                )
                for stage in self.stages
            ),
        )

    def hop_table(self) -> Table:
        """Returns one row for each edge."""
        return Table(
            ("from", "to", "transport", "items", "bytes"),
            tuple(
                (hop.source, hop.target, hop.transport, str(hop.items), str(hop.size_bytes))
                for hop in self.hops
            ),
        )


_Word = TypeVar("_Word", bound=enum.IntEnum)


def word(words: type[_Word], number: int) -> _Word:
    """Returns the word of a wire number; the one for zero when this version does not know it."""
    return words(number) if number in words._value2member_map_ else words(0)


def seconds(message: Duration) -> float:
    """Returns a duration of the wire in seconds."""
    return message.seconds + message.nanos / 1e9


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value * 1e3:.1f} ms"


def from_message(message: pb.Receipt) -> Receipt:
    """Returns the receipt of a wire form."""
    return Receipt(
        message.request_id,
        seconds(message.total) if message.HasField("total") else None,
        seconds(message.first_output) if message.HasField("first_output") else None,
        tuple(map(_stage, message.stages)),
        tuple(
            HopReceipt(hop.source, hop.target, hop.transport, hop.items, hop.size_bytes)
            for hop in message.hops
        ),
    )


def _stage(message: pb.StageReceipt) -> StageReceipt:
    return StageReceipt(
        stage_id=message.stage_id,
        worker_id=message.worker_id,
        device=message.device,
        incarnation=message.incarnation,
        verdict=word(Verdict, message.verdict),
        grade=word(Grade, message.grade),
        queued_seconds=seconds(message.queued) if message.HasField("queued") else None,
        busy_seconds=seconds(message.busy) if message.HasField("busy") else None,
        first_output_seconds=(
            seconds(message.first_output) if message.HasField("first_output") else None
        ),
        total_seconds=seconds(message.total) if message.HasField("total") else None,
        input_bytes=message.input_bytes,
        output_bytes=message.output_bytes,
    )
