"""The trial of a plan that is up: every example, one cancel, and what it all took."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.app.acceptance import (
    RETURN_TOLERANCE_BYTES,
    until_back,
    until_quiet,
    worker_bytes,
)
from coordinator.app.coordinator import Coordinator
from coordinator.app.judging import Finding, element_count, joined_text, judge
from coordinator.cli.examples import Example
from coordinator.cli.tables import seconds
from coordinator.facts.sizes import format_size
from stagewire.client import AsyncClient, Receipt
from stagewire.errors import StageError
from stagewire.tensor import Value

QUIET_SECONDS: Final = 60.0
"""Time that lanes get to come back; a loaded machine is no fault."""
BACK_SECONDS: Final = 15.0
"""Time for freed memory to come back: heartbeats and collectors of garbage are that slow."""
_PARTS: Final = (0.5, 0.2, 0.0)
"""Parts of a request's usual time after which it is cancelled: earlier where it had ended."""


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """What one output gave."""

    items: int
    elements: int
    text: str | None
    """All of it, for an output of texts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one example came out."""

    pipeline: str
    example: int
    seconds: float
    first_output_seconds: float | None
    outputs: Mapping[str, OutputSummary]
    findings: tuple[Finding, ...]
    failure: str
    """Why the request failed; empty when it ended well."""
    receipt: Receipt | None

    @property
    def misses(self) -> tuple[str, ...]:
        """What is not as it must be, in words."""
        if self.failure:
            return (f"{self.pipeline} {self.example}: {self.failure}",)
        return tuple(
            f"{self.pipeline} {self.example}: {finding}"
            for finding in self.findings
            if not finding.is_met
        )


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What came of the one request that was cancelled."""

    pipeline: str
    example: int
    after_seconds: float
    was_running: bool
    """Whether it ran when it was cancelled; a quick one may have ended before."""
    quiet_seconds: float
    """Time until no request held anything and no lane computed."""
    still_busy: tuple[str, ...]
    bytes_before: Mapping[str, int]
    bytes_after: Mapping[str, int]
    """What each worker occupied before and afterwards."""
    not_returned: Mapping[str, int]
    """By how much workers stayed above what they occupied before, beyond what is tolerated."""
    again: Outcome
    """The same example once more."""

    @property
    def misses(self) -> tuple[str, ...]:
        """What is not as it must be, in words."""
        name = f"cancel of {self.pipeline} {self.example}"
        found = [f"{name}: {what} is still busy" for what in self.still_busy]
        found += [
            f"{name}: worker {worker} kept {format_size(size)}, more than"
            f" {format_size(RETURN_TOLERANCE_BYTES)}"
            for worker, size in self.not_returned.items()
        ]
        if not self.was_running:
            found.append(f"{name}: it ended before it could be cancelled; use a longer example")
        return (*found, *(f"after the {name}: {miss}" for miss in self.again.misses))


class Trial:
    """Asks a coordinator of this process what its plan has examples for."""

    def __init__(
        self, coordinator: Coordinator, client: AsyncClient, tell: Callable[[str], None]
    ) -> None:
        self._coordinator = coordinator
        self._client = client
        self._tell = tell

    async def run_all(self, examples: Sequence[Example]) -> tuple[Outcome, ...]:
        """Runs one example after the other."""
        return tuple([await self._tried(example) for example in examples])

    async def cancel_one(
        self, examples: Sequence[Example], outcomes: Sequence[Outcome]
    ) -> Cancellation | None:
        """Cancels the longest request that is known to end well; None when there is none."""
        known = [
            (outcome.seconds, example)
            for example, outcome in zip(examples, outcomes, strict=True)
            if not outcome.failure
        ]
        if not known:
            return None
        usual, example = max(known, key=lambda item: item[0])
        await until_quiet(self._coordinator, QUIET_SECONDS)
        before = worker_bytes(self._coordinator)
        after_seconds, was_running = await self._cancelled(example, usual)
        self._tell(f"{example.name}: cancelled after {seconds(after_seconds)}")
        began = time.monotonic()
        busy = await until_quiet(self._coordinator, QUIET_SECONDS)
        quiet_seconds = time.monotonic() - began
        kept = await until_back(self._coordinator, before, BACK_SECONDS)
        return Cancellation(
            example.pipeline,
            example.number,
            after_seconds,
            was_running,
            quiet_seconds,
            busy,
            before,
            worker_bytes(self._coordinator),
            kept,
            await self._tried(example),
        )

    async def _cancelled(self, example: Example, usual_seconds: float) -> tuple[float, bool]:
        """Cancels a request while it runs; returns after which time, and whether it ran."""
        for part in _PARTS:
            accepted = asyncio.Event()
            request = asyncio.create_task(self._ask(example, accepted))
            begun = asyncio.create_task(accepted.wait())
            began = time.monotonic()
            try:
                await asyncio.wait({request, begun}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({request}, timeout=part * usual_seconds)
                was_running = not request.done()
            finally:
                request.cancel()
                begun.cancel()
                await asyncio.gather(request, begun, return_exceptions=True)
            if was_running:
                break
        return time.monotonic() - began, was_running

    async def _tried(self, example: Example) -> Outcome:
        began = time.monotonic()
        try:
            outcome = await self._ask(example, asyncio.Event())
        except StageError as error:
            took, failure = time.monotonic() - began, f"{error.reason}: {error.message}"
            outcome = Outcome(example.pipeline, example.number, took, None, {}, (), failure, None)
        verdict = "missed" if outcome.misses else "as expected"
        self._tell(f"{example.name}: {verdict} after {seconds(outcome.seconds)}")
        return outcome

    async def _ask(self, example: Example, accepted: asyncio.Event) -> Outcome:
        began = time.monotonic()
        first: float | None = None
        items: dict[str, list[Value]] = {}
        async with self._client.infer(example.pipeline, example.inputs) as call:
            await call.request_id
            accepted.set()
            async for output in call:
                first = time.monotonic() - began if first is None else first
                items.setdefault(output.port, []).append(output.value)
            receipt = call.receipt
        return Outcome(
            example.pipeline,
            example.number,
            time.monotonic() - began,
            first,
            {
                name: OutputSummary(len(values), element_count(values), joined_text(values))
                for name, values in items.items()
            },
            judge(example.spec, items),
            "",
            receipt,
        )
