"""What is seen while a coordinator comes up: a live table on a terminal, lines elsewhere."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from coordinator.app.coordinator import Coordinator
from coordinator.cli.screen import Screen
from coordinator.cli.tables import against, doing, seconds
from stagewire.client import CoordinatorState
from stagewire.client.state import Phase, StageState, WorkerState, from_message

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            self._screen.note(f"{subject}: {what}")

    @contextlib.asynccontextmanager
    async def showing(self, coordinator: Coordinator) -> AsyncIterator[None]:
        """Shows what happens during the block."""
        follower = asyncio.create_task(self._follow(coordinator))
        try:
            with self._moving():
                yield
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower

    def _moving(self) -> contextlib.AbstractContextManager[object]:
        if not self._screen.is_live:
            return contextlib.nullcontext()
        from coordinator.cli.moving import drawn_lines, drawn_state, moving

        def draw() -> "RenderableType":
            if self._state is not None:
                return drawn_state(self._state)
            return drawn_lines([f"{name}: {what}" for name, what in self._works.items()])

        return moving(draw, _TICK_SECONDS)

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
            self._screen.note(line)


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
        return f"stage {stage.stage_id}: {doing(stage)}"
    return ""
