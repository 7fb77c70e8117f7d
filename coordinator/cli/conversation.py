"""The conversation of the demo: one question, its answer as it comes, and what it took."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from coordinator.app.coordinator import Coordinator
from coordinator.cli.outputs import write
from coordinator.cli.screen import Screen
from coordinator.cli.tables import request_table, seconds, worker_table
from coordinator.facts.ids import PortId, StageId
from coordinator.pipeline.receipt import make_receipt
from coordinator.plan.loading import load_plan
from stagewire.client import Client, CoordinatorState, Output, Receipt, audio
from stagewire.client.call import Call
from stagewire.client.receipt import from_message as receipt_from_message
from stagewire.client.state import from_message
from stagewire.endpoint import Endpoint
from stagewire.errors import MediaInvalidError
from stagewire.tensor import Value

if TYPE_CHECKING:
    from rich.console import RenderableType

REPLY_RATE: Final = 22_050
"""Samples a second of the voice of `plans/voice.yaml`."""
_HEARING_RATE: Final = 16_000
"""Samples a second that the stage `resample` gives."""
_TEXTS: Final = ("heard", "answer")
_TICK_SECONDS: Final = 0.125


def read_question(path: Path, plan_path: Path) -> Mapping[str, Value]:
    """Returns the inputs of a spoken question; nothing has been started by then.

    Raises:
        MediaInvalidError: it is no audio, empty, or longer than the plan takes.
    """
    inputs: dict[str, Value] = dict(audio(path))
    samples, rate = np.size(inputs["audio"]), int(np.asarray(inputs["rate"]))
    resample = load_plan(plan_path).plan.stages[StageId("resample")]
    taken = resample.inputs[PortId("audio")].shape[0].max_extent / rate
    heard = resample.outputs[PortId("audio")].shape[0].max_extent / _HEARING_RATE
    limit = min(taken, heard)
    if samples > limit * rate:
        raise MediaInvalidError(
            f"{path.name} is {samples / rate:.1f} s long; the plan takes {limit:.0f} s at its rate"
            f" of {rate} Hz; cut it"
        )
    return inputs


class Conversation:
    """One request of the demo. The blocking client runs in a thread beside the coordinator."""

    def __init__(self, screen: Screen, pipeline: str, inputs: Mapping[str, Value]) -> None:
        self._screen = screen
        self._pipeline = pipeline
        self._inputs = inputs
        self._texts: dict[str, list[str]] = {}
        self._reply: list[Value] = []
        self._open_port = ""
        self._first_audio: float | None = None
        self._total = 0.0
        self._receipt: Receipt | None = None
        self._state: CoordinatorState | None = None
        self._guard = threading.Lock()
        self._call: Call | None = None
        self._is_cancelled = False

    async def hold(self, endpoint: Endpoint, coordinator: Coordinator) -> None:
        """Asks the question and shows the answer as it comes.

        Raises:
            MediaInvalidError: nobody speaks in the recording.
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
        if not "".join(self._texts.get("heard", ())).strip():
            raise MediaInvalidError("nobody speaks in the recording; record a spoken question")

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
        return "\n".join(f"{port}: {''.join(pieces)}" for port, pieces in self._texts.items())

    def show_receipt(self) -> None:
        """Shows where each stage ran and what it took."""
        if self._receipt is None or self._state is None:
            raise RuntimeError("the conversation was not held")
        self._screen.table(request_table(self._receipt, self._state), "What it took")
        self._screen.table(worker_table(self._state), "Workers")
        if self._first_audio is not None:
            self._screen.line(f"first audio after {seconds(self._first_audio)}")
        self._screen.line(f"all of it in {seconds(self._total)}")

    def write(self, path: Path) -> None:
        """Writes the spoken reply.

        Raises:
            DiskFullError: the file cannot be written.
        """
        write(path, self._reply, REPLY_RATE)

    def _talk(self, endpoint: Endpoint) -> None:
        with Client(endpoint.address, endpoint.token) as client:
            began = time.monotonic()
            with client.infer(self._pipeline, self._inputs) as call:
                if not self._begin(call):
                    return
                for output in call:
                    self._take(output, time.monotonic() - began)
                self._receipt = call.receipt
            self._total = time.monotonic() - began
            self._state = client.placement()
        self._screen.end_line()

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
        if output.port not in _TEXTS:
            self._first_audio = self._first_audio or after_seconds
            self._reply.append(output.value)
            return
        text = str(output.value)
        self._texts[output.port] = [*self._texts.get(output.port, ()), text]
        if self._screen.is_live:
            return
        if self._open_port != output.port:
            self._screen.end_line()
            self._screen.write(f"{output.port}: ")
            self._open_port = output.port
        self._screen.write(text)
