"""Whether a changed knob reached what it should change."""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.judging.declarations import ARM_ROLE

UNSET: Final = "unset"
"""Setting of a variable that stands for its absence."""
SIDES: Final = ("A", "B")
_ENTRY_DEPTH: Final = 1

FIELD_PROOFS: Final[Mapping[str, str]] = {
    "stages.*.threads": "stages.*.threads",
    "stages.*.executor": "stages.*.executor",
    "stages.*.workers": "stages.*.worker",
    "stages.*.device.require": "stages.*.device",
    "stages.*.device.prefer": "stages.*.device",
    "stages.*.memory.resident": "stages.*.reserved_bytes",
    "workers.*.memory.resident": "workers.*.reserved_bytes",
    "policies.os_reserve": "ledger.limit_bytes",
}
"""What a coordinator reports that shows a field of its plan. What it does not report, no
comparison can be built on."""


class NotProvenError(Exception):
    """A setting did not reach what it should change, or nothing shows that it did."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that differs between arms that are otherwise the same."""

    kind: str
    """`env`, `field` or `revision`."""
    name: str
    """Variable, or path of a plan's field; empty for a revision."""
    settings: tuple[str, str]
    """Of `A` and `B`."""
    reach: str = ARM_ROLE
    """Role of the processes that a variable must reach."""

    @property
    def title(self) -> str:
        """What it is called in a table."""
        return {"env": f"variable {self.name}", "field": self.name}.get(self.kind, "revision")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one arm: by the bench from outside, and by the arm of the coordinator."""

    variables: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    """Value of the changed variable in each process, by role; None where it is not set."""
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON
    code: Mapping[str, str] = field(default_factory=dict)
    """Path of each module of the product that was imported, as the processes say."""


def parse_setting(text: str) -> Any:  # JSON
    """Returns the value of a plan's field as it is written on the command line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def with_field(plan: Any, path: str, value: Any) -> None:  # a plan as JSON
    """Sets a field of a plan in place.

    Raises:
        KeyError: the plan has no such place.
    """
    *way, last = path.split(".")
    place = plan
    for depth, name in enumerate(way):
        # An entry, such as a stage, must be there already; what it may leave out need not be.
        place = place[name] if depth == _ENTRY_DEPTH else place.setdefault(name, {})
    place[last] = value


def prove_variable(knob: Knob, seen: Mapping[str, Seen]) -> str:
    """Returns how it is known that a variable arrived.

    Raises:
        NotProvenError: a process does not have it as set.
    """
    for side, setting in zip(SIDES, knob.settings, strict=True):
        wanted = None if setting == UNSET else setting
        found = seen[side].variables.get(knob.reach, ())
        if not found:
            raise NotProvenError(
                f"arm {side} has no process in the role {knob.reach!r};"
                f" roles: {', '.join(sorted(seen[side].variables)) or 'none'}"
            )
        if any(value != wanted for value in found):
            shown = ", ".join(UNSET if value is None else repr(value) for value in found)
            raise NotProvenError(
                f"{knob.name} did not reach the {knob.reach} of arm {side}: set to {setting!r},"
                f" found {shown}{_elsewhere(knob, seen[side], wanted)}"
            )
    counts = " and ".join(str(len(seen[side].variables[knob.reach])) for side in SIDES)
    return f"/proc/PID/environ of {knob.reach}: {counts} processes"


def _elsewhere(knob: Knob, seen: Seen, wanted: str | None) -> str:
    roles = [
        role
        for role, values in seen.variables.items()
        if role != knob.reach and values and all(value == wanted for value in values)
    ]
    return f"; it reached {', '.join(sorted(roles))} (--in ROLE)" if roles else ""


def prove_field(knob: Knob, seen: Mapping[str, Seen], extra: Mapping[str, str]) -> str:
    """Returns how it is known that a field of the plan arrived.

    Raises:
        NotProvenError: nothing shows it, or what shows it is not as set.
    """
    key = _fact_of(knob.name, {**FIELD_PROOFS, **extra})
    if key is None:
        raise NotProvenError(
            f"nothing that a coordinator reports shows {knob.name}; a benchmark may name a fact"
            " that does (`proofs`)"
        )
    shown = {side: _look_up(seen[side].facts, key) for side in SIDES}
    if None in shown.values():
        raise NotProvenError(f"the arms do not say {key}, which would show {knob.name}")
    if shown["A"] == shown["B"]:
        raise NotProvenError(
            f"{knob.name} changed nothing: {key} is {shown['A']!r} in both arms, for"
            f" {knob.settings[0]!r} and for {knob.settings[1]!r}"
        )
    return f"{key}: {shown['A']} and {shown['B']}"


def prove_revision(seen: Mapping[str, Seen], folders: Mapping[str, str]) -> str:
    """Returns how it is known that each arm ran the code of its revision.

    Raises:
        NotProvenError: a module came from somewhere else.
    """
    for side in SIDES:
        code = seen[side].code
        if not code:
            raise NotProvenError(f"arm {side} does not say which code it ran")
        for module, path in code.items():
            if not path.startswith(f"{folders[side]}/"):
                raise NotProvenError(
                    f"arm {side} imported {module} from {path}, not from the checkout of its"
                    " revision"
                )
    return f"import paths of {', '.join(sorted(seen['A'].code))}"


def _fact_of(path: str, proofs: Mapping[str, str]) -> str | None:
    for pattern, key in proofs.items():
        if fnmatch.fnmatchcase(path, pattern) and path.count(".") == pattern.count("."):
            names = iter(path.split(".")[1:2])
            return ".".join(next(names, part) if part == "*" else part for part in key.split("."))
    return None


def _look_up(facts: Any, key: str) -> Any:  # JSON
    for part in key.split("."):
        facts = facts.get(part) if isinstance(facts, dict) else None
    return facts
