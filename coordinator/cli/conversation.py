"""The conversation of a demo: one request, its answer as it comes, and what it took."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from coordinator.app.coordinator import Coordinator
from coordinator.cli.exhibit import Exhibit
from coordinator.cli.screen import Screen
from coordinator.cli.tables import request_table, seconds, worker_table
from coordinator.pipeline.receipt import make_receipt
from stagewire.client import Client, CoordinatorState, Output, Receipt
from stagewire.client.call import Call
from stagewire.client.receipt import from_message as receipt_from_message
from stagewire.client.state import from_message
from stagewire.endpoint import Endpoint

if TYPE_CHECKING:
    from rich.console import RenderableType

_TICK_SECONDS: Final = 0.125


class Conversation:
    """One request of a demo. The blocking client runs in a thread beside the coordinator."""

    def __init__(self, screen: Screen, exhibit: Exhibit) -> None:
        self._screen = screen
        self._exhibit = exhibit
        self._texts: dict[str, list[str]] = {}
        self._open_paragraph = ""
        self._first: float | None = None
        self._total = 0.0
        self._receipt: Receipt | None = None
        self._state: CoordinatorState | None = None
        self._guard = threading.Lock()
        self._call: Call | None = None
        self._is_cancelled = False

    async def hold(self, endpoint: Endpoint, coordinator: Coordinator) -> None:
        """Sends the request and shows the answer as it comes.

        Raises:
            MediaInvalidError: there was nothing in the input to be answered.
            StageError: the request failed.
        """
        try:
            async with self._showing(coordinator):
                await asyncio.to_thread(self._talk, endpoint)
        except asyncio.CancelledError:
            self._cancel()
            raise
        if self._screen.is_live:
            # What moved is gone; what was said stays.
            self._screen.line(self._said())
        self._exhibit.conclude(self._screen)

    @contextlib.asynccontextmanager
    async def _showing(self, coordinator: Coordinator) -> AsyncIterator[None]:
        """Shows texts and stages while they change, on a terminal."""
        if not self._screen.is_live:
            yield
            return
        from coordinator.cli.moving import moving

        ticker = asyncio.create_task(self._tick(coordinator))
        try:
            with moving(self._drawn, _TICK_SECONDS, is_transient=True):
                yield
        finally:
            ticker.cancel()

    async def _tick(self, coordinator: Coordinator) -> None:
        while True:
            self._state = from_message(coordinator.view.state())
            for request in coordinator.engine.running:
                self._receipt = receipt_from_message(make_receipt(request))
            await asyncio.sleep(_TICK_SECONDS)

    def _drawn(self) -> "RenderableType":
        from coordinator.cli.moving import drawn_lines, drawn_table

        receipt, state = self._receipt, self._state
        if receipt is None or state is None:
            return drawn_lines([self._said()])
        return drawn_table(request_table(receipt, state), self._said())

    def _said(self) -> str:
        return "\n".join(f"{name}: {''.join(pieces)}" for name, pieces in self._texts.items())

    def show_receipt(self) -> None:
        """Shows where each stage ran and what it took."""
        if self._receipt is None or self._state is None:
            raise RuntimeError("the conversation was not held")
        self._screen.table(request_table(self._receipt, self._state), "What it took")
        self._screen.table(worker_table(self._state), "Workers")
        if self._first is not None:
            self._screen.line(f"first {self._exhibit.first[1]} after {seconds(self._first)}")
        self._screen.line(f"all of it in {seconds(self._total)}")

    def _talk(self, endpoint: Endpoint) -> None:
        # A failure is told on a line of its own, below what was said so far.
        with Client(endpoint.address, endpoint.token) as client, self._screen.whole_lines():
            began = time.monotonic()
            with client.infer(self._exhibit.pipeline, self._exhibit.inputs) as call:
                if not self._begin(call):
                    return
                for output in call:
                    self._take(output, time.monotonic() - began)
                self._receipt = call.receipt
            self._total = time.monotonic() - began
            self._state = client.placement()

    def _begin(self, call: Call) -> bool:
        with self._guard:
            self._call = call
            return not self._is_cancelled

    def _cancel(self) -> None:
        with self._guard:
            self._is_cancelled = True
            if self._call is not None:
                self._call.cancel()

    def _take(self, output: Output, after_seconds: float) -> None:
        if output.port == self._exhibit.first[0] and self._first is None:
            self._first = after_seconds
        for name, text in self._exhibit.take(output):
            self._texts[name] = [*self._texts.get(name, ()), text]
            if self._screen.is_live:
                continue
            if self._open_paragraph != name:
                self._screen.end_line()
                self._screen.write(f"{name}: ")
                self._open_paragraph = name
            self._screen.write(text)
