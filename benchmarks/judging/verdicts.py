"""What may be said of a run, in fixed words."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.judging.declarations import Better, Comparison
from benchmarks.judging.figures import Ratio, ratio
from benchmarks.judging.record import Record

LEAST_ROUNDS: Final = 5
"""Rounds below which nothing is said: that three agree by chance happens once in four runs."""
FAILED_SHARE: Final = 0.2
"""Share of failed rounds above which nothing is said: those that are left are a choice."""
SPINNING_CORES: Final = 0.1
"""CPU time of an arm with nothing to do from which something spins."""
NOISY_CORES: Final = 0.2
"""CPU time of others from which a round says little."""


class Word(enum.Enum):
    """Every verdict there is."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"
    PASS = "pass"
    MISSED = "**missed**"
    NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one comparison came to."""

    comparison: Comparison
    ratio: Ratio | None
    word: Word
    """Which side is better, where rounds agree."""
    limit_word: Word | None
    """Whether the limit is kept; None without one."""
    reason: str = ""
    """Why there is no verdict, or what to hold against one."""


def too_many_failed(failed: int, planned: int) -> bool:
    """Whether so many rounds failed that the others prove nothing."""
    return failed > FAILED_SHARE * planned


def judge(record: Record) -> tuple[Finding, ...]:
    """Returns a finding for each comparison of which at least one side was measured."""
    return tuple(
        _judge(record, item)
        for item in record.comparisons
        if record.values(item.over) or record.values(item.under)
    )


def _judge(record: Record, comparison: Comparison) -> Finding:
    found = ratio(record.values(comparison.over), record.values(comparison.under))
    reason = _objection(record, comparison, found)
    has_limit = comparison.limit is not None
    if found is None or reason:
        nothing = Word.NO_VERDICT
        return Finding(comparison, found, nothing, nothing if has_limit else None, reason)
    better = record.metric(comparison.over.metric).better
    word = rank(found, better)
    if comparison.limit is None:
        return Finding(comparison, found, word, None)
    is_kept = (
        found.value >= comparison.limit
        if better is Better.HIGHER
        else found.value <= comparison.limit
    )
    return Finding(
        comparison,
        found,
        word,
        Word.PASS if is_kept else Word.MISSED,
        "the limit lies inside the spread" if found.holds(comparison.limit) else "",
    )


def rank(found: Ratio, better: Better) -> Word:
    """Returns which word the first side deserves; none inside the spread."""
    if found.holds(1.0):
        return Word.NO_DIFFERENCE
    return Word.BETTER if (found.low > 1.0) is (better is Better.HIGHER) else Word.WORSE


def _objection(record: Record, comparison: Comparison, found: Ratio | None) -> str:
    """Returns why nothing can be said; empty when something can."""
    for cell in (comparison.over, comparison.under):
        step = record.steps.get(cell.metric, "")
        failed, planned = record.failed_rounds(cell.arm, step), record.planned.get(step, 0)
        if too_many_failed(failed, planned):
            return f"{failed} of {planned} rounds of {cell.arm} failed"
    if found is None:
        return "no round has both sides"
    if found.rounds < LEAST_ROUNDS:
        return f"{found.rounds} of at least {LEAST_ROUNDS} rounds"
    return ""


def remarks(record: Record) -> tuple[str, ...]:
    """Returns what a reader must hold against the figures."""
    said = list(record.notes)
    idle = [value for item in record.disturbances for value in item.idle]
    others = [value for item in record.disturbances for value in item.others]
    if any(value > SPINNING_CORES for value in idle):
        said.append(f"arms that had nothing to do used up to {max(idle):.2f} cores")
    if noisy := sum(value > NOISY_CORES for value in others):
        said.append(
            f"other processes used up to {max(others):.2f} cores;"
            f" turns disturbed: {noisy} of {len(others)}"
        )
    if not record.preflight.get("is_quiet", True):
        said.append(f"the machine was busy before the run: {record.preflight.get('reason', '')}")
    if record.provenance.get("is_dirty"):
        said.append("the checkout had uncommitted changes")
    counts: dict[tuple[str, str], int] = {}
    for failure in record.failures:
        counts[failure.arm, failure.step] = counts.get((failure.arm, failure.step), 0) + 1
    said += [
        f"failed turns of {arm} in {step}: {count}; the first said: {_first(record, arm, step)}"
        for (arm, step), count in counts.items()
    ]
    return tuple(said)


def _first(record: Record, arm: str, step: str) -> str:
    text = next(item.text for item in record.failures if (item.arm, item.step) == (arm, step))
    lines = text.strip().splitlines() or ["nothing"]
    return lines[0] if len(lines) == 1 else f"{lines[0]} ({lines[-1].strip()})"


def is_missed(findings: Sequence[Finding]) -> bool:
    """Whether a limit was not kept."""
    return any(item.limit_word is Word.MISSED for item in findings)


def is_open(findings: Sequence[Finding]) -> bool:
    """Whether a limit, or everything where there is none, got no verdict."""
    limits = [item.limit_word for item in findings if item.limit_word is not None]
    return Word.NO_VERDICT in limits or (
        not limits and all(item.word is Word.NO_VERDICT for item in findings)
    )
