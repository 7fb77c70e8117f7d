"""Where each field of a plan stands in its file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the root of the plan to a field."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY_CHARACTERS = 40


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column of one character, both counted from one."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


START = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Positions:
    """Position of every value and of every key of one document, by field path."""

    values: Mapping[FieldPath, Position]
    keys: Mapping[FieldPath, Position]

    def of_value(self, path: FieldPath) -> Position:
        """Returns where a value begins; the nearest enclosing one if it is not there."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, START)

    def of_key(self, path: FieldPath) -> Position:
        """Returns where the key of a field stands; the nearest enclosing key if it has none."""
        while path and path not in self.keys:
            if isinstance(path[-1], int) and path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.keys.get(path) or self.of_value(())


def spell_path(path: FieldPath) -> str:
    """Returns a path as people write it, such as `stages.hear.inputs.audio.shape[0]`."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            spelled += f".{part}" if spelled else part
        else:
            shortened = part if len(part) <= _KEY_CHARACTERS else part[:_KEY_CHARACTERS] + "..."
            spelled += f"[{json.dumps(shortened)}]"
    return spelled or "plan"
