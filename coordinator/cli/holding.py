"""A coordinator of this process: up, held up, and down again, whatever signals come."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

from coordinator.app.coordinator import Coordinator
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from stagewire.endpoint import Endpoint
from stagewire.errors import ExitCode

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The last one comes when the terminal is closed."""


class Holding:
    """Holds one coordinator up; the first signal ends it in order, the second at once."""

    def __init__(self, coordinator: Coordinator, screen: Screen, progress: Progress) -> None:
        self._coordinator = coordinator
        self._screen = screen
        self._progress = progress
        self._signals = 0
        self.is_draining_allowed = False
        """Whether a signal waits for requests; else it ends what runs."""
        self.temporary_folder: Path | None = None
        """Folder that goes with this process, also when it ends at once."""

    async def hold(self, serve: Callable[[Endpoint], Awaitable[ExitCode]]) -> ExitCode:
        """Brings the coordinator up, lets `serve` run, and brings it down.

        Raises:
            StageError: it could not be brought up, or `serve` failed.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a coordinator is held by a task")
        stopped = asyncio.create_task(self._coordinator.wait_for_stop())
        stopped.add_done_callback(lambda done: self._cancel_start(done, task))
        try:
            with self._catching(task):
                async with contextlib.AsyncExitStack() as shown:
                    await shown.enter_async_context(self._progress.showing(self._coordinator))
                    async with self._coordinator.running() as endpoint:
                        await shown.aclose()
                        code = await serve(endpoint)
                # A plan that is stopped while a part of it is given up did not end well.
                is_whole = not (self._coordinator.cut_short or self._coordinator.given_up)
                return code if is_whole else ExitCode.FAULT
        except asyncio.CancelledError:
            if self._signals:
                task.uncancel()
                self._screen.note("interrupted; everything is stopped")
                return ExitCode.INTERRUPTED
            if stopped.done() and not stopped.cancelled():
                task.uncancel()
                self._screen.note("stopped before it was ready")
                return ExitCode.OK
            raise
        finally:
            stopped.cancel()

    def _cancel_start(self, done: "asyncio.Task[None]", task: "asyncio.Task[object]") -> None:
        # Asked to stop from outside while nothing serves yet: there is nothing to drain.
        if not done.cancelled() and not self.is_draining_allowed:
            task.cancel()

    @contextlib.contextmanager
    def _catching(self, task: "asyncio.Task[object]") -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._interrupt, task)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _interrupt(self, task: "asyncio.Task[object]") -> None:
        self._signals += 1
        if self._signals > 1:
            self._coordinator.kill()
            self._screen.show_cursor()
            if self.temporary_folder is not None:
                shutil.rmtree(self.temporary_folder, ignore_errors=True)
            # At once means at once: threads that wait for a library would hold up an exit.
            os._exit(ExitCode.INTERRUPTED)
        # Said afterwards: a reader that is gone must not keep anything from stopping.
        if self.is_draining_allowed:
            self._coordinator.request_stop()
            self._screen.note("stopping; once more to stop at once")
        else:
            task.cancel()
            self._screen.note("stopping")
