"""One answer to a spoken question, by either side."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewire.client import Client, audio
from stagewire.tensor import Array


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer; seconds."""

    seconds: float
    first_seconds: float
    heard: str
    answer: str
    sentences: int
    samples: int

    @property
    def outcome(self) -> list[str | int]:
        """What all arms must have in common, as JSON."""
        return [self.heard, self.answer, self.sentences, self.samples]


def ask_product(client: Client, question: Path) -> tuple[Answered, dict[str, float]]:
    """Asks a running coordinator as a program of a person would."""
    start = time.perf_counter()
    first: float | None = None
    heard: list[str] = []
    pieces: list[str] = []
    spoken: list[Array] = []
    with client.infer("voice", audio(question)) as call:
        for output in call:
            if output.port == "reply":
                first = first or time.perf_counter() - start
                spoken.append(np.asarray(output.value))
            else:
                (heard if output.port == "heard" else pieces).append(str(output.value))
        receipt = call.receipt
    seconds = time.perf_counter() - start
    answered = Answered(
        seconds,
        seconds if first is None else first,
        " ".join(heard),
        "".join(pieces),
        len(spoken),
        sum(map(len, spoken)),
    )
    return answered, {stage.stage_id: stage.busy_seconds or 0.0 for stage in receipt.stages}


def from_reference(said: Mapping[str, Any]) -> Answered:  # JSON
    """Returns the answer of the reference program."""
    return Answered(
        said["seconds"],
        said["first_seconds"],
        said["heard"],
        said["answer"],
        said["sentences"],
        said["samples"],
    )
