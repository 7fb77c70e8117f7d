"""Refuses paths of artifacts that may leave their folder. Pure."""

from typing import Final

from coordinator.facts.paths import problem_of_relative_path
from stagewire.errors import PathForbiddenError

_SHOWN_CHARACTERS: Final = 255


def safe_parts(path: str) -> tuple[str, ...]:
    """Returns the components of a relative path that stays inside its folder on every system.

    Raises:
        PathForbiddenError: the path is absolute, climbs, or means something else on Windows.
    """
    problem = problem_of_relative_path(path)
    if problem:
        shown = path[:_SHOWN_CHARACTERS]
        raise PathForbiddenError(f"{shown!r} {problem}", path=shown)
    return tuple(path.split("/"))
