"""Pipelines that a person names: whether the plan has them, and which of them would fit."""

import contextlib
import dataclasses
import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from coordinator.facts.sizes import format_size
from stagewire.errors import ConstraintExceededError, PipelineUnknownError, StageError

if TYPE_CHECKING:
    from coordinator.app.settings import Settings
    from coordinator.plan.loading import LoadedPlan


def check_pipelines(names: Iterable[str], known: Iterable[str]) -> None:
    """Checks that a plan has every pipeline that was named.

    Raises:
        PipelineUnknownError: it has not; the message lists those that it has.
    """
    there = list(known)
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise PipelineUnknownError(
                f"the plan has no pipeline {name!r}; it has {', '.join(there)}{hint}"
            )


@contextlib.contextmanager
def naming_what_fits(settings: "Settings", loaded: "LoadedPlan") -> Iterator[None]:
    """Adds to a refusal for lack of memory which pipelines would fit alone, if any would."""
    try:
        yield
    except ConstraintExceededError as refusal:
        asked = settings.pipelines or tuple(loaded.plan.pipelines)
        fitting = [*_fitting(asked, settings, loaded)] if len(asked) > 1 else []
        if fitting:
            refusal.add_note(f"of its pipelines, each of these fits alone: {', '.join(fitting)}")
        raise


def _fitting(asked: Iterable[str], settings: "Settings", loaded: "LoadedPlan") -> Iterator[str]:
    from coordinator.app.coordinator import design_run

    for name in asked:
        with contextlib.suppress(StageError):
            alone = design_run(dataclasses.replace(settings, pipelines=(name,)), loaded)
            lines = alone.ledger.snapshot().constraints
            size = format_size(max(line.reserved_bytes for line in lines))
            yield f"`--pipeline {name}` ({size})"
