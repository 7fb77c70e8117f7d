"""Entry of an arm: `python -m benchmarks.arms.entry MODULE:FUNCTION SETTINGS`.

Prints a JSON line when it is ready and one after each turn that a line on its input orders; leaves
when its input ends. What libraries print goes to its log.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Final, Protocol, TypeAlias

_PRODUCT: Final = ("coordinator", "stagewire")

Settings: TypeAlias = Mapping[str, Any]
"""What the benchmark passes on, and `folder`, which the arm may write to (JSON, hence Any)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn came to."""

    metrics: Mapping[str, float]
    outcome: Any = None
    """What the work came to, as JSON; every arm and every turn must have the same."""


class Arm(Protocol):
    """One side of a comparison, ready to take turns."""

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it says of itself, as JSON."""

    def perform(self, step: str) -> Turn:
        """Takes one turn."""


Opening: TypeAlias = Callable[[Settings], AbstractContextManager[Arm]]


def serve(opening: Opening, settings: Settings, output: IO[str]) -> None:
    """Takes turns until the input ends."""

    def tell(**event: Any) -> None:  # JSON
        print(json.dumps(event), file=output, flush=True)

    with opening(settings) as arm:
        tell(event="ready", roles=_plain(arm.roles), facts=_facts(arm))
        for line in sys.stdin:
            turn = arm.perform(line.strip())
            tell(
                event="done",
                metrics=dict(turn.metrics),
                outcome=turn.outcome,
                roles=_plain(arm.roles),
                facts=_facts(arm),
            )


def _plain(roles: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {role: list(pids) for role, pids in roles.items()}


def _facts(arm: Arm) -> dict[str, Any]:  # JSON
    facts = dict(arm.facts)
    return {**facts, "code": import_paths() | facts.get("code", {})}


def import_paths() -> dict[str, str]:
    """Returns where this interpreter takes the product from."""
    specs = {name: importlib.util.find_spec(name) for name in _PRODUCT}
    return {name: spec.origin for name, spec in specs.items() if spec and spec.origin}


def main() -> int:
    """Runs the arm that the command line names."""
    # Libraries print what they like; the pipe is for events alone.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        module, _, function = sys.argv[1].partition(":")
        opening: Opening = getattr(importlib.import_module(module), function)
        serve(opening, json.loads(sys.argv[2]), output)
    except Exception as error:  # the outermost edge: the bench is told, the log has the traceback
        failed = {"event": "failed", "text": f"{type(error).__name__}: {error}"}
        print(json.dumps(failed), file=output, flush=True)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
