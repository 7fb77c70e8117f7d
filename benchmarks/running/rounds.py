"""Arms take turns: warm-ups apart, order rotated, failures kept."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.judging.declarations import ArmSpec, Part, Step
from benchmarks.judging.figures import rotated
from benchmarks.judging.proofs import Seen
from benchmarks.judging.record import Disturbance, Failure
from benchmarks.judging.verdicts import too_many_failed
from benchmarks.running.arm_process import Answer, ArmFailedError, ArmProcess
from benchmarks.running.usage import machine_cpu_seconds, tree_cpu_seconds

Say: TypeAlias = Callable[[str], None]
Verify: TypeAlias = Callable[[Mapping[str, Seen]], None]
"""Checks what is seen of all arms; raises when a comparison would be of nothing."""
_DIGITS = 6


class RunStoppedError(Exception):
    """A run cannot come to figures."""


@dataclass(slots=True)
class Turns:
    """What the turns of a part came to."""

    series: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    """Step of each metric."""
    planned: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # JSON
    """What each arm said of itself, with its import paths."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a run is to be done."""

    folder: Path
    say: Say
    watched: tuple[str, ...] = ()
    verify: Verify = lambda _: None
    is_same_work: bool = True
    """Whether arms whose work came out differently stop the run; otherwise it is noted."""


def take_turns(part: Part, conditions: Conditions) -> Turns:
    """Has the arms of a part take their turns.

    Raises:
        RunStoppedError: an arm does not come up, or the arms do different work.
    """
    with ExitStack() as stack:
        return _Table(part, conditions, stack).play()


class _Table:
    """The arms of one part while they take turns."""

    def __init__(self, part: Part, conditions: Conditions, stack: ExitStack) -> None:
        self._part = part
        self._conditions = conditions
        self._stack = stack
        self._arms: dict[str, ArmProcess] = {}
        self._seen: dict[str, Seen] = {}
        self._outcomes: dict[str, Any] = {}  # JSON
        self._lives = 0
        self._turns = Turns()

    def play(self) -> Turns:
        names = tuple(self._part.arms)
        for step in self._part.steps:
            self._turns.planned[step.name] = step.rounds
            loads: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names}
            self._warm_up(step)
            for number in range(1, step.rounds + 1):
                for name in rotated(names, number - 1):
                    with self._watching(name, loads[name]):
                        self._turn(name, step, number)
                    time.sleep(self._part.settle_seconds)
                self._say_round(step, number)
                if self._is_lost(step):
                    self._turns.notes.append(
                        f"given up after round {number} of {step.rounds} of {step.name}:"
                        " too many failed"
                    )
                    break
            self._turns.disturbances += [
                Disturbance(name, step.name, tuple(idle), tuple(others))
                for name, (idle, others) in loads.items()
            ]
        return self._turns

    def _warm_up(self, step: Step) -> None:
        # All are up before one works: an arm may make what another needs.
        for act in (self._start, self._rehearse):
            for name in self._part.arms:
                try:
                    act(name, step)
                except ArmFailedError as error:
                    raise RunStoppedError(f"arm {name} does not come up: {error}") from None
        self._conditions.verify(self._seen)
        self._compare_outcomes()

    def _compare_outcomes(self) -> None:
        if not self._outcomes:
            return
        (first, wanted), *others = self._outcomes.items()
        for name, outcome in others:
            if outcome == wanted:
                continue
            text = f"the arms do different work: {first} {wanted}, {name} {outcome}"
            if self._conditions.is_same_work:
                raise RunStoppedError(text)
            if text not in self._turns.notes:
                self._turns.notes.append(text)

    def _start(self, name: str, _: Step) -> None:
        """Starts an arm that shall stay and does not run."""
        if not self._part.is_fresh and name not in self._arms:
            self._conditions.say(f"{name} starts")
            self._arms[name] = self._stack.enter_context(self._process(name))

    def _rehearse(self, name: str, step: Step) -> None:
        """Takes the turns that do not count."""
        if step.warm_ups:
            self._conditions.say(f"{step.name}: {name} warms up")
        for _ in range(step.warm_ups):
            if self._part.is_fresh:
                self._once(name, step)
            else:
                self._note(name, self._arms[name], self._arms[name].perform(step.name))

    def _once(self, name: str, step: Step) -> Answer:
        with self._process(name) as arm:
            answer = arm.perform(step.name)
            self._note(name, arm, answer)
            return answer

    def _turn(self, name: str, step: Step, number: int) -> None:
        answer: Answer | None = None
        try:
            if self._part.is_fresh:
                answer = self._once(name, step)
            else:
                if name not in self._arms:
                    self._start(name, step)
                    self._rehearse(name, step)
                    self._conditions.verify(self._seen)
                answer = self._arms[name].perform(step.name)
                self._note(name, self._arms[name], answer)
        except ArmFailedError as error:
            answer = None
            self._conditions.say(f"{step.name} {number}: {name} failed: {error}")
            self._turns.failures.append(Failure(name, step.name, number, str(error)))
            if (arm := self._arms.pop(name, None)) is not None:
                arm.kill()
        self._keep(name, step, number, answer)

    def _note(self, name: str, arm: ArmProcess, answer: Answer) -> None:
        """Takes down what is seen of an arm; its work must come out as it did before."""
        self._seen[name] = arm.seen
        self._turns.facts[name] = {**arm.seen.facts, "code": dict(arm.seen.code)}
        if answer.outcome is None:
            return
        if self._outcomes.setdefault(name, answer.outcome) != answer.outcome:
            raise ArmFailedError(
                f"its work came out differently: {answer.outcome}, before {self._outcomes[name]}"
            )

    def _keep(self, name: str, step: Step, number: int, answer: Answer | None) -> None:
        if answer is not None:
            for metric, value in answer.metrics.items():
                self._turns.steps.setdefault(metric, step.name)
                values = self._turns.series.setdefault(metric, {}).setdefault(name, [])
                values += [None] * (number - 1 - len(values))
                values.append(float(f"{value:.{_DIGITS}g}"))
        for metric, arms in self._turns.series.items():
            if self._turns.steps[metric] == step.name and name in arms:
                arms[name] += [None] * (number - len(arms[name]))

    @contextmanager
    def _watching(self, name: str, loads: tuple[list[float], list[float]]) -> Iterator[None]:
        """Measures what idle arms and everybody else use meanwhile."""
        idle = {other: arm.pid for other, arm in self._arms.items() if other != name}
        before = {other: tree_cpu_seconds(pid) for other, pid in idle.items()}
        own = tree_cpu_seconds(os.getpid())
        machine, start = machine_cpu_seconds(), time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        machine = machine_cpu_seconds() - machine
        used = sum(tree_cpu_seconds(pid) - before[other] for other, pid in idle.items())
        others = machine - (tree_cpu_seconds(os.getpid()) - own)
        loads[0].append(round(max(0.0, used) / seconds, 3))
        loads[1].append(round(max(0.0, others) / seconds, 3))

    def _process(self, name: str) -> ArmProcess:
        self._lives += 1
        spec: ArmSpec = self._part.arms[name]
        folder = self._conditions.folder / f"{name}-{self._lives}"
        return ArmProcess(spec, folder, self._part.timeout_seconds, self._conditions.watched)

    def _is_lost(self, step: Step) -> bool:
        failed = [item.arm for item in self._turns.failures if item.step == step.name]
        return any(too_many_failed(failed.count(name), step.rounds) for name in set(failed))

    def _say_round(self, step: Step, number: int) -> None:
        shown = [
            f"{name} {metric} {values[-1]:.4g}"
            for metric, arms in self._turns.series.items()
            if metric == self._first_metric(step)
            for name, values in arms.items()
            if values and values[-1] is not None
        ]
        self._conditions.say(f"{step.name} {number}/{step.rounds}: {', '.join(shown)}")

    def _first_metric(self, step: Step) -> str:
        return next((name for name, of in self._turns.steps.items() if of == step.name), "")
