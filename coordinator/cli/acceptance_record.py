"""The record of an acceptance: one JSON document, and the tables that a person reads of it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from coordinator.app.acceptance import BudgetCheck, Planned
from coordinator.app.provenance import Provenance, WorkerProvenance
from coordinator.cli.screen import Screen, plain
from coordinator.cli.tables import against, seconds
from coordinator.cli.trial import Cancellation, Outcome
from coordinator.facts.sizes import format_size
from stagewire.client import CoordinatorState, Table
from stagewire.errors import DiskFullError

VERSION: Final = 1
"""Of the form of the document."""
_SHOWN_CHARACTERS: Final = 48


@dataclass(slots=True)
class AcceptanceRecord:
    """What is known of one acceptance; it grows while that goes on."""

    provenance: Provenance
    masked: Planned
    full: Planned | None = None
    """None when the plan was refused."""
    up_seconds: float | None = None
    """Time until every stage was loaded and proved."""
    workers: Mapping[str, WorkerProvenance] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    without_examples: tuple[str, ...] = ()
    cancellation: Cancellation | None = None
    budgets: tuple[BudgetCheck, ...] = ()
    memory: Mapping[str, object] | None = None
    """Memory by attribution, at the end."""
    state: CoordinatorState | None = None
    """What ran where and how it was proved, at the end."""
    complaints: list[str] = field(default_factory=list)
    """What else is not as it must be."""
    left: tuple[str, ...] | None = None
    """What was left when it had stopped; None when it was not brought up."""
    failure: str = ""
    """Why it could not be carried out."""
    was_refused: bool = False
    """Whether that was a refusal: something must change first."""

    @property
    def misses(self) -> tuple[str, ...]:
        """Everything that is not as it must be, in words."""
        found = [miss for outcome in self.outcomes for miss in outcome.misses]
        found += [
            f"{name}: it has no example; write one under pipelines.{name}.examples"
            for name in self.without_examples
        ]
        if self.cancellation is not None:
            found += self.cancellation.misses
        found += [item.complaint for item in self.budgets if not item.is_met]
        found += self.complaints
        found += [f"left behind: {what}" for what in self.left or ()]
        return tuple(found)

    @property
    def verdict(self) -> str:
        """`accepted` or `missed`; `refused` or `failed` when it could not be carried out."""
        if self.failure:
            return "refused" if self.was_refused else "failed"
        return "missed" if self.misses else "accepted"

    def document(self) -> dict[str, Any]:
        """Returns the JSON document (values of every kind, hence Any)."""
        content = {
            name: plain(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in {"failure", "was_refused", "complaints"}
        }
        return {
            "version": VERSION,
            "verdict": self.verdict,
            "misses": list(self.misses),
            "failure": self.failure,
            **content,
        }

    def write(self, path: Path) -> None:
        """Writes the document; a reader sees all of it or the file that was there before.

        Raises:
            DiskFullError: it cannot be written.
        """
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            scratch.write_text(
                json.dumps(self.document(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            scratch.replace(path)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise DiskFullError(f"{path} cannot be written: {error.strerror}") from None

    def show(self, screen: Screen) -> None:
        """Shows it as tables, the misses last."""
        screen.table(self._plans(), "Planned")
        screen.table(self._examples(), "Examples")
        screen.table(self._budgets(), "Memory against budgets")
        screen.table(self._checks(), "Checks")
        misses = self.misses
        if not misses:
            screen.line("\naccepted", style="bold green")
            return
        screen.line(f"\nmissed: {len(misses)}", style="bold")
        for miss in misses:
            screen.line(f"  {miss}")

    def _plans(self) -> Table:
        return Table(
            ("devices", "verdict", "reserved", "placed"),
            tuple(
                (
                    f"{item.devices} alone" if item is self.masked else item.devices,
                    "admitted" if item.is_admitted else "refused",
                    format_size(item.reserved_bytes) if item.is_admitted else "-",
                    f"{len(item.placement)} stages" if item.is_admitted else item.refusal,
                )
                for item in (self.masked, self.full)
                if item is not None
            ),
        )

    def _examples(self) -> Table:
        return Table(
            ("pipeline", "example", "verdict", "first output", "time", "gave"),
            tuple(
                (
                    item.pipeline,
                    str(item.example),
                    "missed" if item.misses else "as expected",
                    seconds(item.first_output_seconds),
                    seconds(item.seconds),
                    ", ".join(
                        f"{name}: {_short(output.text)}"
                        if output.text is not None
                        else f"{name}: {output.items} items"
                        for name, output in item.outputs.items()
                    ),
                )
                for item in self.outcomes
            ),
        )

    def _budgets(self) -> Table:
        return Table(
            ("budget of", "measured / budget", "peak", "verdict"),
            tuple(
                (
                    item.owner,
                    against(item.measured_bytes, item.budget_bytes),
                    format_size(item.peak_bytes),
                    "kept" if item.is_met else "failed",
                )
                for item in self.budgets
            ),
        )

    def _checks(self) -> Table:
        rows = []
        if self.up_seconds is not None:
            rows.append(("brought up", "yes", f"in {seconds(self.up_seconds)}"))
        if (cancel := self.cancellation) is not None:
            found = (
                f"{cancel.pipeline} {cancel.example} after {seconds(cancel.after_seconds)}: lanes"
                f" back in {seconds(cancel.quiet_seconds)}, memory"
                f" {_moved(cancel.bytes_before, cancel.bytes_after)}"
            )
            rows.append(("cancelled once", "no" if cancel.misses else "yes", found))
        if self.left is not None:
            what = ", ".join(self.left) or "no process, no endpoint"
            rows.append(("nothing left", "no" if self.left else "yes", what))
        return Table(("check", "holds", "found"), tuple(rows))


def _moved(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    return ", ".join(
        f"{worker} {format_size(size)} before, {format_size(after.get(worker, 0))} after"
        for worker, size in before.items()
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 3] + "..."
