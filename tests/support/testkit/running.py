"""A coordinator in this process with real workers, which are fakes, and a connected client."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.app.coordinator import Coordinator
from coordinator.app.settings import Settings, Timing
from coordinator.facts.ids import StageId, WorkerId
from coordinator.gateway.incarnation import Attached
from coordinator.plan.loading import load_plan
from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.policy import RestartLimits
from stagewire.client import Client
from stagewire.endpoint import Endpoint
from stagewire.errors import StageError
from testkit import plans
from testkit.waiting import until

QUICK = Timing(heartbeat=0.1, heartbeat_timeout=10.0, start_deadline=60.0, drain=10.0, leave=5.0)
RESTARTS = RestartLimits(first_delay_seconds=0.02)


@dataclass
class Running:
    """A coordinator that is up."""

    coordinator: Coordinator
    endpoint: Endpoint
    client: Client
    faults: list[dict[str, Any]] = field(default_factory=list)
    """What the loop was told about exceptions that nobody took."""
    _pids: set[int] = field(default_factory=lambda: {os.getpid()})

    async def ask(self, function: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """Calls a blocking function of the client beside the loop, which serves it.

        Whatever failure comes out must say nothing of the inside.
        """
        try:
            return await asyncio.to_thread(function, *values, **named)
        except StageError as error:
            self.check_text(error)
            raise

    async def run(self, pipeline: str, inputs: dict[str, Any], **named: Any) -> Any:
        return await self.ask(self.client.run, pipeline, inputs, **named)

    async def failure(self, function: Callable[..., Any], *values: Any, **named: Any) -> StageError:
        """Calls a blocking function that must fail; returns how."""
        with pytest.raises(StageError) as caught:
            await self.ask(function, *values, **named)
        return caught.value

    def check_text(self, error: StageError) -> None:
        """Fails when what a client is told holds a path, a process id or the name of a class."""
        text = f"{error.message} {error.facts}"
        processes = [life.hosting.process for life in self.coordinator.lives.values()]
        self._pids |= {process.pid for process in processes if process is not None}
        assert not re.search(r"(/[\w.-]+){2,}", text), text
        assert not re.search(r"\w(Error|Exception)\b|Traceback|0x[0-9a-f]{6}", text), text
        assert not self._pids & set(map(int, re.findall(r"\b\d{3,7}\b", text))), text

    def pid(self, worker: str) -> int:
        process = self.coordinator.lives[WorkerId(worker)].hosting.process
        assert process is not None
        return process.pid

    def signal(self, worker: str, number: signal.Signals) -> None:
        os.kill(self.pid(worker), number)

    def attached(self, worker: str) -> Attached:
        attached = self.coordinator.lives[WorkerId(worker)].hosting.attached
        assert attached is not None
        return attached

    def phase(self, worker: str) -> WorkerPhase:
        return self.coordinator.runners[WorkerId(worker)].phase

    def incarnation(self, worker: str) -> int:
        return self.coordinator.runners[WorkerId(worker)].incarnation

    async def until_ready(self, *stages: str, after: int | None = None) -> None:
        """Waits until stages take items, of a later incarnation than `after` when that is given."""
        directory = self.coordinator.directory

        def is_ready(stage: str) -> bool:
            if not directory.is_ready(StageId(stage)):
                return False
            incarnation = directory.host_of(StageId(stage)).attached.incarnation
            return after is None or incarnation > after

        await until(lambda: all(map(is_ready, stages)))

    async def until_busy(self, worker: str) -> None:
        """Waits until a worker says that an executor computes."""
        attached = self.attached(worker)
        await until(
            lambda: attached.heartbeat and any(lane.is_busy for lane in attached.heartbeat.lanes)
        )

    async def until_quiet(self) -> None:
        """Waits until no request holds anything, here or in a worker."""
        await until(lambda: not list(self.coordinator.engine.running))
        for life in self.coordinator.lives.values():
            if (attached := life.hosting.attached) is not None:
                await until_idle(attached)

    def promises(self) -> list[Any]:
        """Returns what the ledger holds, less measurements and numbers of incarnations."""
        snapshot = self.coordinator.design.ledger.snapshot()
        lines = [(line.reservation, line.state, line.is_leaving) for line in snapshot.reservations]
        return [snapshot.constraints, lines, snapshot.waiting, snapshot.loading]


async def until_idle(attached: Attached) -> None:
    """Waits until a worker says once more that no executor of it computes, or is lost."""
    seen = attached.heartbeat_count

    def is_idle() -> bool:
        beat = attached.heartbeat if attached.heartbeat_count > seen else None
        return attached.fence_reason is not None or (
            beat is not None and not any(lane.is_busy for lane in beat.lanes)
        )

    await until(is_idle)


def make(
    folder: Path,
    plan: plans.Plan,
    *,
    timing: Timing = QUICK,
    restarts: RestartLimits = RESTARTS,
    report: Callable[[str, str], None] = lambda _, __: None,
    **more: Any,
) -> Coordinator:
    """Returns a coordinator of a plan that is not up yet."""
    path = plans.write(folder, plan)
    settings = Settings(
        path, folder / "state", folder / "cache", timing=timing, restarts=restarts, **more
    )
    return Coordinator(settings, load_plan(path), report)


@contextlib.contextmanager
def watched_loop(faults: list[dict[str, Any]]) -> Any:
    """Gathers what the loop is told about exceptions that nobody took."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    yield
    loop.set_exception_handler(None)


@contextlib.asynccontextmanager
async def running(
    folder: Path, plan: plans.Plan, *, checks: bool = True, **settings: Any
) -> AsyncIterator[Running]:
    """Brings a plan up around the block.

    After the block nothing of its requests may be held and the ledger must be what it was, unless
    `checks` is off because the block leaves a worker given up.
    """
    coordinator = make(folder, plan, **settings)
    it: Running | None = None
    faults: list[dict[str, Any]] = []
    with watched_loop(faults):
        async with coordinator.running() as endpoint:
            with Client(endpoint.address, endpoint.token) as client:
                it = Running(coordinator, endpoint, client, faults)
                before = it.promises()
                yield it
                await it.until_quiet()
                if checks:
                    await until(
                        lambda: all(
                            it.phase(name) is WorkerPhase.READY for name in coordinator.lives
                        )
                    )
                    assert it.promises() == before
    promises = coordinator.design.ledger.snapshot()
    assert not promises.loading
    assert not promises.waiting
    assert {line.state.value for line in promises.reservations} == {"promised"}
    assert not faults


def quick(**changes: Any) -> Timing:
    return replace(QUICK, **changes)
