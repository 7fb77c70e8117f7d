"""What is wrong with a plan, collected so that every problem is told at once."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordinator.plan.positions import FieldPath, Position, Positions, spell_path
from stagewire.errors import PlanInvalidError

_SHOWN_PROBLEMS = 100
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule of a plan."""

    path: FieldPath
    what: str
    remedy: str
    is_about_key: bool = False
    """Whether the key is pointed at instead of the value."""
    position: Position | None = None
    """Known for problems of the text itself; the others are looked up by their path."""


def plan_invalid(
    problems: Iterable[Problem], file_name: str, positions: Positions
) -> PlanInvalidError:
    """Returns the refusal of a plan: one line for each problem, in the order of the file."""
    placed = sorted(
        {
            (_position(problem, positions), spell_path(problem.path), problem.what, problem.remedy)
            for problem in problems
        }
    )
    lines = [
        f"{file_name}:{position}: {path}: {what}; {remedy}"
        for position, path, what, remedy in placed[:_SHOWN_PROBLEMS]
    ]
    if len(placed) > _SHOWN_PROBLEMS:
        lines.append(f"{file_name}: {len(placed) - _SHOWN_PROBLEMS} more problems are not shown")
    return PlanInvalidError("\n".join(lines), problem_count=len(placed))


def suggest(word: str, known: Iterable[str]) -> str:
    """Returns the remedy for an unknown name: the closest known one, or all that there are."""
    names: Sequence[str] = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{_spelled(close[0])}"?'
    return f"known are {', '.join(map(_spelled, names))}" if names else "none is declared"


def shown(value: object) -> str:
    """Returns a value for a message: one line, escaped, shortened."""
    text = repr(value[: _SHOWN_CHARACTERS + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _spelled(name: str) -> str:
    """Returns a name as it is, but for one that has no place in a line."""
    return name if name.isprintable() else shown(name)


def _position(problem: Problem, positions: Positions) -> Position:
    if problem.position is not None:
        return problem.position
    if problem.is_about_key:
        return positions.of_key(problem.path)
    return positions.of_value(problem.path)
