"""What is seen while a coordinator comes up: a live table on a terminal, lines elsewhere."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from coordinator.app.coordinator import Coordinator
from coordinator.cli.screen import Screen, drawn
from coordinator.cli.tables import against, seconds, stage_table, worker_table
from stagewire.client import CoordinatorState
from stagewire.client.state import Phase, StageState, WorkerState, from_message

_LINE_SECONDS: Final = 5.0
"""Time between two lines about the same long work."""
_TICK_SECONDS: Final = 0.25


class Progress:
    """Shows one coordinator coming up."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._works: dict[str, str] = {}
        self._told: dict[str, tuple[str, float]] = {}
        self._state: CoordinatorState | None = None

    def note(self, subject: str, what: str) -> None:
        """Notes work on the disk; called from the thread that does it."""
        self._works[subject] = what
        if self._screen.is_live:
            return
        word = what.split(" ", 1)[0]
        told, when = self._told.get(subject, ("", 0.0))
        if word != told or time.monotonic() - when >= _LINE_SECONDS:
            self._told[subject] = (word, time.monotonic())
            self._screen.line(f"{subject}: {what}")

    @contextlib.asynccontextmanager
    async def showing(
        self, coordinator: Coordinator, more: Callable[[], RenderableType] | None = None
    ) -> AsyncIterator[None]:
        """Shows what happens during the block, with `more` below it."""
        follower = asyncio.create_task(self._follow(coordinator))
        live = contextlib.nullcontext() if not self._screen.is_live else self._live(more)
        try:
            with live:
                yield
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower

    def _live(self, more: Callable[[], RenderableType] | None) -> Live:
        return Live(
            get_renderable=lambda: Group(self.drawn(), *([more()] if more is not None else [])),
            console=self._screen.console,
            refresh_per_second=1 / _TICK_SECONDS,
        )

    def drawn(self) -> RenderableType:
        """Returns the present state for a terminal."""
        if self._state is None:
            return Text("\n".join(f"{name}: {what}" for name, what in self._works.items()))
        return Group(drawn(stage_table(self._state)), drawn(worker_table(self._state)))

    async def _follow(self, coordinator: Coordinator) -> None:
        ticker: asyncio.Task[None] | None = None
        try:
            async for message in coordinator.states():
                self._take(from_message(message))
                if ticker is None:
                    ticker = asyncio.create_task(self._tick(coordinator))
        finally:
            if ticker is not None:
                ticker.cancel()

    async def _tick(self, coordinator: Coordinator) -> None:
        """Looks again and again: memory and the steps of a load change without a new phase."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._take(from_message(coordinator.view.state()))

    def _take(self, state: CoordinatorState) -> None:
        before, self._state = self._state, state
        if self._screen.is_live:
            return
        workers = {} if before is None else {item.worker_id: item for item in before.workers}
        for worker in state.workers:
            self._tell(_line_of_worker(worker), _line_of_worker(workers.get(worker.worker_id)))
        stages = {} if before is None else {item.stage_id: item for item in before.stages}
        for stage in state.stages:
            self._tell(_line_of_stage(stage), _line_of_stage(stages.get(stage.stage_id)))

    def _tell(self, line: str, before: str) -> None:
        if line and line != before:
            self._screen.line(line)


def _line_of_worker(worker: WorkerState | None) -> str:
    if worker is None:
        return ""
    reason = f" after {worker.last_reason}" if worker.last_reason else ""
    return f"worker {worker.worker_id}: {worker.phase.name.lower()}{reason}"


def _line_of_stage(stage: StageState | None) -> str:
    if stage is None:
        return ""
    if stage.load_seconds is not None:
        return (
            f"stage {stage.stage_id}: loaded in {seconds(stage.load_seconds)} on {stage.device} of"
            f" worker {stage.worker_id}, memory"
            f" {against(stage.measured_bytes, stage.reserved_bytes)},"
            f" proof {stage.verdict.name.lower()} {stage.grade.name}"
        )
    if stage.phase is Phase.STARTING and stage.evidence:
        return f"stage {stage.stage_id}: {stage.evidence}"
    return ""
