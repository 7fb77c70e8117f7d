"""`voice`: a spoken question answered aloud, by the product and by one process without it."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import versions
from benchmarks.answers import Answered, ask_product, from_reference
from benchmarks.coordinator_process import RunningCoordinator, running
from benchmarks.figures import rotated
from benchmarks.plans import VoicePlan, artifact_folders, write_voice_plan
from benchmarks.processes import Memory, PeakMemory, UsageMeter, memory
from benchmarks.readiness import Start, describe_start, environments_of
from benchmarks.reference_process import Reference, ensure_environment
from coordinator.app.settings import default_cache_folder
from coordinator.reach.environments import EnvironmentBuilder
from coordinator.reach.layout import Environment

QUESTION: Final = "What is a, river?"
"""As the voice speaks it; the pause has `a` heard as such, and not as `the`."""
LEAST_TOKENS: Final = 80
LEAST_SENTENCES: Final = 4
SIDES: Final = ("product", "reference")


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of one side, and what else the machine did."""

    answered: Answered
    cpu: Mapping[str, float]
    """CPU seconds by group of processes."""
    idle_cores: float
    """CPU time of the other side, which had nothing to do."""
    other_cores: float
    """CPU time of processes that are no part of the benchmark."""
    stages: Mapping[str, float]
    """Busy seconds of each stage, or marks of the reference."""


@dataclass(frozen=True, slots=True)
class Resident:
    """Memory of one side."""

    steady: Memory
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Bench:
    """Both sides, up and waiting."""

    coordinator: RunningCoordinator
    reference: Reference
    question: Path
    models: Path
    """Folder of the model files that both sides map."""

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Process ids by what they are."""
        return {
            "workers": tuple(self.coordinator.workers),
            "coordinator": (self.coordinator.pid,),
            "reference": (self.reference.pid,),
            "client": (os.getpid(),),
        }

    def turn(self, side: str) -> Turn:
        """Has one side answer once while the other waits."""
        meter = UsageMeter(self.groups)
        with meter:
            if side == "product":
                answered, details = ask_product(self.coordinator.client, self.question)
            else:
                said = self.reference.run(self.question)
                answered, details = from_reference(said), dict(said["marks"])
        idle = ("reference",) if side == "product" else ("workers", "coordinator")
        return Turn(
            answered,
            meter.cpu,
            sum(meter.cpu[name] for name in idle) / meter.seconds,
            meter.other_cores,
            details,
        )

    def resident(self, side: str) -> Resident:
        """Measures memory: the peak over one answer, and what is left after it."""
        group = self.groups["workers" if side == "product" else "reference"]
        with PeakMemory(group, self.models) as peak:
            self.turn(side)
        return Resident(memory(group, self.models), peak.peak_bytes)


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that a run found out."""

    starts: tuple[Start, ...]
    turns: Mapping[str, tuple[Turn, ...]]
    residents: Mapping[str, Resident]
    coordinator_memory: Memory
    tokens: int
    loaded: Mapping[str, Any]  # JSON of the reference


def measure(folder: Path, *, rounds: int, starts: int, is_agreed: bool) -> Measured:
    """Brings both sides up and measures them."""
    cache = default_cache_folder()
    plan = write_voice_plan(folder)
    # The first start fills the caches; it is no part of the figures.
    with running(plan.path, folder / "state", is_agreed=is_agreed):
        pass
    environments = _environments(plan, cache)
    python = ensure_environment(
        cache, next(iter(environments.values())).python, is_agreed=is_agreed
    )
    seen: list[Start] = []
    for _ in range(starts - 1):
        with running(plan.path, folder / "state") as coordinator:
            seen.append(describe_start(coordinator, environments))
        environments = _environments(plan, cache)
    settings = {
        "folders": {k: str(v) for k, v in artifact_folders(plan.path, cache).items()},
        "answer": plan.options["answer"],
        "speak": plan.options["speak"],
        "keep_memory": plan.options["speak"].get("keep_memory", False),
    }
    with running(plan.path, folder / "state") as coordinator:
        seen.append(describe_start(coordinator, environments))
        with Reference(python, settings, folder / "reference.log") as reference:
            versions.check_same(reference.loaded["versions"], environments)
            question = _question(reference, cache)
            bench = Bench(coordinator, reference, question, cache / "artifacts")
            return _rounds(bench, rounds, tuple(seen))


def _rounds(bench: Bench, rounds: int, starts: tuple[Start, ...]) -> Measured:
    first = {side: bench.turn(side).answered for side in SIDES}  # warms both sides up
    tokens = int(bench.reference.run(bench.question)["tokens"])
    _check_outcome(first, tokens)
    turns: dict[str, list[Turn]] = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in rotated(SIDES, number):
            turn = bench.turn(side)
            turns[side].append(turn)
            print(
                f"round {number + 1} {side:9} {turn.answered.seconds:6.2f} s,"
                f" first sample {turn.answered.first_seconds:5.2f} s,"
                f" idle side {turn.idle_cores:.3f}, others {turn.other_cores:.2f} cores",
                flush=True,
            )
            if turn.answered.outcome != first["product"].outcome:
                raise RuntimeError(f"round {number + 1} of the {side} answered something else")
    residents = {side: bench.resident(side) for side in SIDES}
    return Measured(
        starts,
        {side: tuple(items) for side, items in turns.items()},
        residents,
        memory([bench.coordinator.pid], bench.models),
        tokens,
        bench.reference.loaded,
    )


def _check_outcome(first: Mapping[str, Answered], tokens: int) -> None:
    """Stops when the sides do different work, or too little for the figures to mean anything."""
    product, reference = first["product"], first["reference"]
    if product.outcome != reference.outcome:
        raise RuntimeError(
            f"the sides differ: product {product.outcome}, reference {reference.outcome}"
        )
    if tokens < LEAST_TOKENS or product.sentences < LEAST_SENTENCES:
        raise RuntimeError(
            f"the reply to {product.heard!r} has {tokens} tokens in {product.sentences} sentences;"
            f" it must have {LEAST_TOKENS} in {LEAST_SENTENCES}: pin another question"
        )
    print(f"heard     {product.heard}")
    print(f"answered  {product.answer}")
    print(f"          {tokens} tokens, {product.sentences} sentences, {product.samples} samples")


def _environments(plan: VoicePlan, cache: Path) -> dict[str, Environment]:
    builder = EnvironmentBuilder(cache, lambda _, __: None)
    return environments_of(
        plan.environments, {folder: builder.find(folder) for folder in plan.environments.values()}
    )


def _question(reference: Reference, cache: Path) -> Path:
    """Returns the spoken question, made once with the voice of the plan."""
    key = hashlib.sha256(QUESTION.encode()).hexdigest()[:12]
    path = cache / "benchmarks" / f"question-{key}.wav"
    if not path.exists():
        reference.say(path, QUESTION)
    return path
