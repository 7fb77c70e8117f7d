"""`coordinator accept`: a whole plan, run on its examples and held against what it promises."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from coordinator.app.acceptance import (
    check_budgets,
    check_coordinator,
    plan_masked,
    planned,
    processes_of,
    what_is_left,
)
from coordinator.app.attribution import MemoryReport
from coordinator.app.coordinator import Coordinator
from coordinator.app.memory_report import read_memory
from coordinator.app.processes import from_message
from coordinator.app.provenance import gather, worker_provenance
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.app.temporary_state import temporary_state
from coordinator.cli import memory
from coordinator.cli.acceptance_record import AcceptanceRecord
from coordinator.cli.examples import Example, read_examples
from coordinator.cli.holding import Holding
from coordinator.cli.options import (
    PipelinesOption,
    PlanOption,
    RamOption,
    StateOption,
    YesOption,
    new_app,
    quota_bytes,
)
from coordinator.cli.outputs import check_target
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.tables import against
from coordinator.cli.trial import Trial
from coordinator.cli.up import prepare
from coordinator.devices.process_memory import ProcessIdentity
from coordinator.plan.loading import LoadedPlan, load_plan
from stagewire.client import AsyncClient
from stagewire.endpoint import Endpoint
from stagewire.errors import ExitCode, Refusal, StageError

app = new_app()
_LARGEST = 3
"""Mappings of each process in the record."""


@app.command()
def accept(
    plan: PlanOption,
    json: Annotated[
        Path | None,
        typer.Option("--json", help="Write one JSON record into this file.", show_default=False),
    ] = None,
    pipeline: PipelinesOption = None,
    ram: RamOption = None,
    yes: YesOption = False,
    state: StateOption = None,
) -> int:
    """Run a whole plan on its examples, and hold it against what it promises.

    Plans it with the CPU alone, then with everything; brings it up; runs every example of every
    pipeline; cancels a request; compares memory with budgets; and sees to it that nothing is left.
    Ends with 3 when anything is not as it must be.
    """
    screen = Screen()
    if json is not None:
        check_target(json)
    with _state(state) as folder:
        settings = Settings(
            plan,
            folder,
            default_cache_folder(),
            pipelines=tuple(pipeline or ()),
            quota_bytes=quota_bytes(ram),
        )
        return Acceptance(settings, screen, json).run(
            is_agreed=yes, temporary=folder if state is None else None
        )


class Acceptance:
    """One acceptance of one plan."""

    def __init__(self, settings: Settings, screen: Screen, target: Path | None) -> None:
        self._settings = settings
        self._screen = screen
        self._target = target
        self._loaded: LoadedPlan = load_plan(settings.plan_path)
        self._processes: set[ProcessIdentity] = set()

    def run(self, *, is_agreed: bool, temporary: Path | None) -> int:
        """Carries it out, writes the record and shows it.

        Raises:
            StageError: it could not be carried out; the record says so as well.
        """
        record = AcceptanceRecord(gather(self._loaded), plan_masked(self._settings, self._loaded))
        try:
            code = self._carry_out(record, is_agreed=is_agreed, temporary=temporary)
        except StageError as error:
            record.failure = f"{error.reason}: {error.message}"
            record.was_refused = isinstance(error, Refusal)
            self._write(record)
            raise
        if code is not ExitCode.OK:
            return code
        self._write(record)
        record.show(self._screen)
        return ExitCode.MISSED if record.misses else ExitCode.OK

    def _carry_out(
        self, record: AcceptanceRecord, *, is_agreed: bool, temporary: Path | None
    ) -> ExitCode:
        screen = self._screen
        hidden = record.masked.hidden_routes
        screen.note(
            f"masked: {hidden} ways to other devices hidden"
            if hidden
            else "masked: the workers of this plan reach the CPU alone, so nothing is hidden"
        )
        # Before anything is fetched or started for them.
        examples = read_examples(self._loaded, self._settings.pipelines)
        progress = Progress(screen)
        coordinator = prepare(
            self._settings, screen, progress, is_agreed=is_agreed, is_agreed_unasked=False
        )
        record.full = planned(coordinator.design, "all")
        judged = {example.pipeline for example in examples}
        record.without_examples = tuple(
            name for name in coordinator.design.pipelines if name not in judged
        )
        holding = Holding(coordinator, screen, progress)
        holding.temporary_folder = temporary
        began = time.monotonic()

        async def serve(endpoint: Endpoint) -> ExitCode:
            record.up_seconds = time.monotonic() - began
            await self._try(record, coordinator, endpoint, examples)
            return ExitCode.OK

        code = asyncio.run(holding.hold(serve))
        record.left = tuple(what_is_left(self._settings, self._processes))
        return code

    async def _try(
        self,
        record: AcceptanceRecord,
        coordinator: Coordinator,
        endpoint: Endpoint,
        examples: tuple[Example, ...],
    ) -> None:
        self._processes |= processes_of(coordinator)
        record.workers = worker_provenance(coordinator.lives)
        async with AsyncClient(endpoint.address, endpoint.token) as client:
            trial = Trial(coordinator, client, self._screen.note)
            record.outcomes = await trial.run_all(examples)
            self._processes |= processes_of(coordinator)
            record.cancellation = await trial.cancel_one(examples, record.outcomes)
            if record.cancellation is None:
                record.complaints.append("no request ended well, so that none was cancelled")
            record.state = await client.placement()
        self._processes |= processes_of(coordinator)
        report = await asyncio.to_thread(read_memory, from_message(coordinator.processes()))
        # Its own process is this one, with the client and what came out: the most that it can be.
        record.budgets = (check_coordinator(report), *check_budgets(coordinator))
        record.memory = memory.as_json(report, _LARGEST)
        record.complaints += [
            f"worker {worker.worker_id} was lost {worker.restarts} times, last by"
            f" {worker.last_reason}"
            for worker in record.state.workers
            if worker.restarts
        ]
        record.complaints += _above_reservation(report)

    def _write(self, record: AcceptanceRecord) -> None:
        if self._target is not None:
            record.write(self._target)
            self._screen.note(f"record: {self._target.absolute()}")


def _above_reservation(report: MemoryReport) -> Iterator[str]:
    """Iterates over what occupies more than is reserved, by the look from outside."""
    for item in report.occupants[1:]:
        if item.is_over:
            counted = against(item.counted_bytes, item.reserved_bytes)
            yield f"{item.name}: {counted} with all that it started"
    yield from memory.unread(report)


@contextlib.contextmanager
def _state(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        yield chosen.expanduser().absolute()
        return
    with temporary_state("stagewire-accept-") as folder:
        yield folder
