"""`bench ab`: two settings of one knob of a benchmark, once it is proven that they arrived."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.judging import proofs
from benchmarks.judging.declarations import (
    SUBJECT,
    ArmSpec,
    Benchmark,
    Better,
    Cell,
    Comparison,
    Part,
)
from benchmarks.judging.proofs import SIDES, UNSET, Knob, NotProvenError, Seen
from benchmarks.judging.quiet import Preflight
from benchmarks.judging.record import Record
from benchmarks.running.bench import measure
from benchmarks.running.rounds import Conditions
from benchmarks.running.worktree import Checkout, checked_out


def run(
    benchmark: Benchmark,
    options: Namespace,
    knob: Knob,
    conditions: Conditions,
    preflight: Preflight,
) -> Record:
    """Compares two settings; returns the record with the proof.

    Raises:
        NotProvenError: a setting did not reach what it should change.
        RunStoppedError: it cannot come to figures.
    """
    if knob.settings[0] == knob.settings[1]:
        raise NotProvenError(f"both settings are {knob.settings[0]!r}; there is nothing to compare")
    said: list[str] = []
    with ExitStack() as stack:
        checkouts: Mapping[str, Checkout] = {}
        if knob.kind == "revision":
            checkouts = checked_out(knob.settings, conditions.folder, conditions.say, stack)

        def verify(seen: Mapping[str, Seen]) -> None:
            said.append(_prove(benchmark, knob, seen, checkouts))
            if len(said) == 1:
                conditions.say(f"proven: {said[0]}")

        record = measure(
            benchmark,
            [_sided(part, knob, checkouts) for part in benchmark.parts(options) if _has(part)],
            _comparisons(benchmark),
            replace(
                conditions,
                verify=verify,
                watched=(knob.name,) if knob.kind == "env" else (),
                is_same_work=False,
            ),
            preflight,
        )
    shown = dict(zip(SIDES, knob.settings, strict=True))
    # What a name such as HEAD stands for changes.
    shown |= {side: checkout.commit[:12] for side, checkout in checkouts.items()}
    return replace(record, knob={"title": knob.title, **shown, "proof": said[-1]})


def _prove(
    benchmark: Benchmark, knob: Knob, seen: Mapping[str, Seen], checkouts: Mapping[str, Checkout]
) -> str:
    if knob.kind == "env":
        return proofs.prove_variable(knob, seen)
    if knob.kind == "field":
        return proofs.prove_field(knob, seen, benchmark.proofs)
    return proofs.prove_revision(
        seen, {side: str(checkout.folder) for side, checkout in checkouts.items()}
    )


def _has(part: Part) -> bool:
    return SUBJECT in part.arms


def _sided(part: Part, knob: Knob, checkouts: Mapping[str, Checkout]) -> Part:
    """Returns a part whose arms are the product in either setting."""
    subject = part.arms[SUBJECT]
    return replace(
        part,
        arms={
            side: _set(subject, knob, setting, checkouts.get(side))
            for side, setting in zip(SIDES, knob.settings, strict=True)
        },
        # Without a warm-up, rounds would be measured before anything is proven.
        steps=tuple(replace(step, warm_ups=max(step.warm_ups, 1)) for step in part.steps),
    )


def _set(arm: ArmSpec, knob: Knob, setting: str, checkout: Checkout | None) -> ArmSpec:
    title = f"{knob.title} {setting}"
    if knob.kind == "env":
        value = None if setting == UNSET else setting
        return replace(arm, title=title, variables={**arm.variables, knob.name: value})
    if knob.kind == "field":
        fields = {**arm.settings.get("fields", {}), knob.name: proofs.parse_setting(setting)}
        return replace(arm, title=title, settings={**arm.settings, "fields": fields})
    if checkout is None:
        raise NotProvenError(f"revision {setting} has no checkout")
    command = (str(checkout.python), *arm.command[1:])
    return replace(arm, title=title, command=command, folder=checkout.folder)


def _comparisons(benchmark: Benchmark) -> tuple[Comparison, ...]:
    """Returns B by A of every metric that has a better direction."""
    return tuple(
        Comparison(
            metric.name,
            f"{metric.title}: B by A",
            over=Cell(metric.name, SIDES[1]),
            under=Cell(metric.name, SIDES[0]),
        )
        for metric in benchmark.metrics
        if metric.better is not Better.NEITHER
    )
