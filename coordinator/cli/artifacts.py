"""`coordinator artifacts`: fetches, lists and verifies the models of a plan."""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from coordinator.app.preparation import Download
from coordinator.app.settings import default_cache_folder
from coordinator.artifacts.progress import ArtifactProgress
from coordinator.artifacts.specification import Artifact, from_spec
from coordinator.artifacts.store import ArtifactStatus, ArtifactStore
from coordinator.cli.consent import ask_for
from coordinator.cli.options import JsonOption, PlanOption, YesOption, new_app, optional_plan
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.cli.tables import seconds
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import LoadedPlan, load_plan
from stagewire.client import Table
from stagewire.errors import ExitCode

app = new_app()


@app.callback()
def artifacts() -> None:
    """Fetch, list and verify models."""


@app.command()
def pull(plan: PlanOption, yes: YesOption = False) -> None:
    """Fetch every model of a plan that is missing or damaged."""
    loaded, store, screen = load_plan(plan), _store(), Screen()
    wanted = [item for item in _artifacts(loaded) if _is_wanting(store, item)]
    downloads = [
        Download(f"model {item.id}", store.missing_bytes(item), item.licence) for item in wanted
    ]
    is_allowed = ask_for(downloads, screen, is_agreed=yes, is_agreed_unasked=False)
    progress = Progress(screen)
    for item in _artifacts(loaded):
        size_bytes, began = store.missing_bytes(item), time.monotonic()
        store.pull(
            item,
            loaded.folder,
            _teller(progress, item),
            is_network_allowed=is_allowed,
        )
        if item in wanted:
            took = seconds(time.monotonic() - began)
            progress.note(f"model {item.id}", f"fetched {format_size(size_bytes)} in {took}")
        screen.line(f"{item.id}: whole")


@app.command("list")
def list_artifacts(
    plan: Annotated[
        Path | None, optional_plan("List those of a plan instead of the cache's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the models of a plan, or everything in the cache."""
    store, screen = _store(), Screen()
    rows = _cached(store) if plan is None else _planned(store, load_plan(plan))
    if json:
        screen.json({"cache": str(store.root), "artifacts": rows})
        return
    screen.line(f"cache: {store.root}")
    cells = (
        (row.artifact, row.format, format_size(row.size_bytes), row.state, row.licence)
        for row in rows
    )
    screen.table(Table(("artifact", "format", "size", "state", "licence"), tuple(cells)))


@app.command()
def verify(plan: PlanOption) -> int:
    """Read every byte of the models of a plan and compare it with its digest."""
    store, screen = _store(), Screen()
    problems = 0
    for item in _artifacts(load_plan(plan)):
        found = store.verify(item)
        problems += len(found)
        screen.line(f"{item.id}: {'whole' if not found else ''}".rstrip())
        for problem in found:
            screen.line(f"  {problem}")
    if problems:
        command = spelled(f"`coordinator artifacts pull --plan {shlex.quote(str(plan))}`")
        screen.line(f"run {command}, which fetches what is wrong again")
    return ExitCode.REFUSED if problems else ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Row:
    artifact: str
    format: str
    licence: str
    size_bytes: int
    state: str


def _cached(store: ArtifactStore) -> list[_Row]:
    return [
        _Row(
            ", ".join(entry.ids),
            entry.format,
            entry.licence,
            entry.size_bytes,
            ArtifactStatus.PRESENT.value,
        )
        for entry in store.entries()
    ]


def _planned(store: ArtifactStore, loaded: LoadedPlan) -> list[_Row]:
    return [
        _Row(
            item.id,
            item.format,
            item.licence,
            sum(file.size_bytes or 0 for file in item.files),
            store.status(item).value,
        )
        for item in _artifacts(loaded)
    ]


def _store() -> ArtifactStore:
    return ArtifactStore(default_cache_folder())


def _artifacts(loaded: LoadedPlan) -> list[Artifact]:
    return [from_spec(name, spec) for name, spec in loaded.plan.artifacts.items()]


def _is_wanting(store: ArtifactStore, artifact: Artifact) -> bool:
    return store.status(artifact) is not ArtifactStatus.PRESENT


def _teller(progress: Progress, artifact: Artifact) -> Callable[[ArtifactProgress], None]:
    def tell(found: ArtifactProgress) -> None:
        total = f" of {format_size(found.total_bytes)}" if found.total_bytes else ""
        done = format_size(found.done_bytes)
        progress.note(f"model {artifact.id}", f"{found.phase} {found.file} {done}{total}")

    return tell
