"""The arms of `voice`: the product's starts, the product, and the reference program."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.arms import versions
from benchmarks.arms.answers import Answered, ask_product, from_reference
from benchmarks.arms.coordinator import RunningCoordinator, running
from benchmarks.arms.entry import Settings, Turn
from benchmarks.arms.memory import PeakMemory, memory
from benchmarks.arms.meter import CpuMeter
from benchmarks.arms.placement import placement_facts
from benchmarks.arms.plans import artifact_folders, environment_folders, voice_plan, write_plan
from benchmarks.arms.readiness import describe_start, environments_of
from benchmarks.arms.reference import Reference, ensure_environment
from coordinator.app.settings import default_cache_folder
from coordinator.reach.environments import EnvironmentBuilder
from coordinator.reach.layout import Environment

QUESTION: Final = "What is a, river?"
"""As the voice speaks it; the pause has `a` heard as such, and not as `the`."""
LEAST_TOKENS: Final = 80
LEAST_SENTENCES: Final = 4
_STAGES: Final = ("hear", "answer", "speak")
_MIB: Final = 2**20


@dataclass(slots=True)
class Starts:
    """Starts of the product, each kept up until the arm ends."""

    plan: Path
    folder: Path
    is_agreed: bool
    stack: contextlib.ExitStack
    roles: Mapping[str, Sequence[int]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def perform(self, step: str) -> Turn:
        """Starts it; the caches are warm from the second time on."""
        coordinator = self.stack.enter_context(
            running(self.plan, self.folder / "state", is_agreed=self.is_agreed)
        )
        self.roles, self.facts = coordinator.roles, placement_facts(coordinator)
        start = describe_start(coordinator, find_environments(default_cache_folder()))
        return Turn(
            {
                "ready": start.ready,
                "ready_limit": start.limit,
                "endpoint": start.timeline["endpoint"],
                "work": start.work,
            }
        )


@dataclass(slots=True)
class Product:
    """A coordinator whose plan is up."""

    coordinator: RunningCoordinator
    question: Path
    models: Path
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return self.coordinator.roles

    def perform(self, step: str) -> Turn:
        """Answers the question once."""
        workers = tuple(self.coordinator.workers)
        if step == "memory":
            with PeakMemory(workers, self.models) as peak:
                answered, _ = ask_product(self.coordinator.client, self.question)
            own = memory([self.coordinator.pid], self.models).anonymous_bytes
            figures = _memory(workers, peak, self.models) | {"coordinator_memory": own / _MIB}
            return Turn(figures, answered.outcome)
        with CpuMeter([self.coordinator.pid]) as meter:
            answered, busy = ask_product(self.coordinator.client, self.question)
        stages = {name: busy[name] for name in _STAGES}
        return Turn(
            {**_times(answered), **stages, "coordinator_cpu": meter.seconds * 1e3},
            answered.outcome,
        )


@dataclass(slots=True)
class OneProcess:
    """The reference program, loaded."""

    program: Reference
    question: Path
    models: Path
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return {"reference": [self.program.pid]}

    def perform(self, step: str) -> Turn:
        """Answers the question once; the program times itself, so that its pipe costs nothing."""
        if step == "memory":
            with PeakMemory([self.program.pid], self.models) as peak:
                said = self.program.run(self.question)
            figures = _memory([self.program.pid], peak, self.models)
            return Turn(figures, from_reference(said).outcome)
        said = self.program.run(self.question)
        answered = from_reference(said)
        stages = _between(said["marks"])
        return Turn(
            {**_times(answered), **stages, "tokens": float(said["tokens"])}, answered.outcome
        )


@contextlib.contextmanager
def starting(settings: Settings) -> Iterator[Starts]:
    """Prepares a start."""
    folder = Path(settings["folder"])
    plan = write_plan(folder, voice_plan(), settings.get("fields", {}))
    with contextlib.ExitStack() as stack:
        yield Starts(plan, folder, settings["is_agreed"], stack)


@contextlib.contextmanager
def product(settings: Settings) -> Iterator[Product]:
    """Brings the product up."""
    folder = Path(settings["folder"])
    cache = default_cache_folder()
    plan = write_plan(folder, voice_plan(), settings.get("fields", {}))
    with running(plan, folder / "state", is_agreed=settings["is_agreed"]) as coordinator:
        environments = find_environments(cache)
        facts = placement_facts(coordinator)
        facts["environments"] = {name: item.key for name, item in environments.items()}
        facts["versions"] = versions.of(environments)
        yield Product(coordinator, question_path(cache), cache / "artifacts", facts)


@contextlib.contextmanager
def reference(settings: Settings) -> Iterator[OneProcess]:
    """Loads the reference program; makes the question if nobody has, and tries it."""
    folder = Path(settings["folder"])
    cache = default_cache_folder()
    content = voice_plan()
    environments = find_environments(cache)
    python = ensure_environment(
        cache, next(iter(environments.values())).python, is_agreed=settings["is_agreed"]
    )
    plan = write_plan(folder, content, {})
    stages = content["stages"]
    models = {name: str(path) for name, path in artifact_folders(plan, cache).items()}
    order = {
        "folders": models,
        "answer": stages["answer"]["options"],
        "speak": stages["speak"]["options"],
        "keep_memory": stages["speak"]["options"].get("keep_memory", False),
    }
    with Reference(python, order, folder / "reference.log") as program:
        versions.check_same(program.loaded["versions"], environments)
        question = question_path(cache)
        if not question.exists():
            question.parent.mkdir(parents=True, exist_ok=True)
            program.say(question, QUESTION)
        check_size(program.run(question))
        yield OneProcess(program, question, cache / "artifacts", {})


def check_size(said: Mapping[str, Any]) -> None:  # JSON
    """Stops when there is too little work for figures to mean anything."""
    if said["tokens"] < LEAST_TOKENS or said["sentences"] < LEAST_SENTENCES:
        raise RuntimeError(
            f"the reply to {said['heard']!r} has {said['tokens']} tokens in {said['sentences']}"
            f" sentences; it must have {LEAST_TOKENS} in {LEAST_SENTENCES}: pin another question"
        )


def question_path(cache: Path) -> Path:
    """Returns where the spoken question lies."""
    key = hashlib.sha256(QUESTION.encode()).hexdigest()[:12]
    return cache / "benchmarks" / f"question-{key}.wav"


def find_environments(cache: Path) -> dict[str, Environment]:
    """Returns the environment of each worker as it is now."""
    folders = environment_folders(voice_plan())
    builder = EnvironmentBuilder(cache, lambda _, __: None)
    return environments_of(folders, {path: builder.find(path) for path in folders.values()})


def _times(answered: Answered) -> dict[str, float]:
    return {"wall": answered.seconds, "first": answered.first_seconds}


def _memory(pids: Sequence[int], peak: PeakMemory, models: Path) -> dict[str, float]:
    steady = memory(pids, models).total_bytes
    return {"steady": steady / _MIB, "peak": peak.peak_bytes / _MIB}


def _between(marks: Mapping[str, float]) -> dict[str, float]:
    """Returns the time of each stage; marks are times since the beginning."""
    names = list(marks)
    before = dict(zip(names[1:], names, strict=False))
    return {name: marks[name] - marks[before[name]] for name in _STAGES}
