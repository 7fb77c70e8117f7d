"""What `coordinator accept` looks at beside the answers: masks, budgets, quiet lanes, what is left.

A mask hides devices. So far it leaves the CPU alone, which every machine has: a plan that is
admitted behind it works where nothing else is there.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from coordinator.app.attribution import MemoryReport
from coordinator.app.coordinator import Coordinator
from coordinator.app.design import Design, make_design
from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.app.processes import from_message
from coordinator.app.settings import Settings
from coordinator.devices.cores import probe_cores
from coordinator.devices.memory import probe_memory
from coordinator.devices.process_memory import ProcessIdentity
from coordinator.devices.process_memory_linux import descendants_of, is_alive
from coordinator.devices.rows import CapabilityRow, device_kind
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import LoadedPlan
from stagewire.endpoint import FILE_NAME
from stagewire.errors import Refusal

CPU: Final = "cpu"
_LOOK_SECONDS: Final = 0.1
RETURN_TOLERANCE_BYTES: Final = 16 << 20
"""What an allocator may keep of a request that was cancelled, above what was there before."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan becomes with some of the devices."""

    devices: str
    """Which devices it was shown."""
    is_admitted: bool
    refusal: str
    """Why it was refused; empty when it was admitted."""
    placement: Mapping[str, str]
    """Worker and device of each stage."""
    reserved_bytes: int
    hidden_routes: int
    """Ways to devices that the mask hid."""


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """One budget beside what was measured."""

    owner: str
    budget_bytes: int
    measured_bytes: int
    peak_bytes: int
    is_met: bool
    complaint: str
    """What is wrong, and by how much; empty when nothing is."""


def plan_masked(settings: Settings, loaded: LoadedPlan) -> Planned:
    """Decides a plan with the CPU alone, whatever else the machine has.

    A refusal is an answer: a plan may need what the mask hides.
    """
    rows = expected_rows(loaded.plan, checkout_root(), is_fake=settings.is_fake)
    shown = behind_mask(rows)
    hidden = len(rows) - len(shown)
    try:
        design = make_design(
            loaded.plan,
            shown,
            probe_memory(),
            pipelines=settings.pipelines,
            quota_bytes=settings.quota_bytes,
            cores=probe_cores(),
        )
    except Refusal as refusal:
        return Planned(CPU, False, f"{refusal.reason}: {refusal.message}", {}, 0, hidden)
    return planned(design, CPU, hidden)


def behind_mask(rows: Iterable[CapabilityRow]) -> tuple[CapabilityRow, ...]:
    """Returns the rows that the mask lets through."""
    return tuple(row for row in rows if device_kind(row.device) == CPU)


def planned(design: Design, devices: str, hidden_routes: int = 0) -> Planned:
    """Returns what an admitted design says."""
    lines = design.ledger.snapshot().constraints
    return Planned(
        devices,
        True,
        "",
        {
            stage: f"{placed.worker_id}/{placed.device}"
            for stage, placed in design.placement.stages.items()
        },
        max((line.reserved_bytes for line in lines), default=0),
        hidden_routes,
    )


def check_budgets(coordinator: Coordinator) -> tuple[BudgetCheck, ...]:
    """Holds the budget of every worker and every stage against what was measured so far."""
    failed: dict[str, list[str]] = {}
    for item in coordinator.design.ledger.failed_budgets():
        failed.setdefault(item.owner, []).append(str(item))
    state = coordinator.view.state()
    peaks = {
        str(line.reservation.owner): line.measurement
        for line in coordinator.design.ledger.snapshot().reservations
        if line.measurement is not None
    }
    owners = [
        *((f"worker:{item.worker_id}", item.reserved_bytes) for item in state.workers),
        *((f"stage:{item.stage_id}", item.reserved_bytes) for item in state.stages),
    ]
    checks = []
    for owner, budget in owners:
        complaint = "; ".join(failed.get(owner, ()))
        seen = peaks.get(owner)
        measured, peak = (seen.measured_bytes, seen.peak_bytes) if seen else (0, 0)
        checks.append(BudgetCheck(owner, budget, measured, peak, not complaint, complaint))
    return tuple(checks)


def check_coordinator(report: MemoryReport) -> BudgetCheck:
    """Holds the reservation of the coordinator's own process against what it occupies."""
    own = report.occupants[0]
    over = own.counted_bytes - own.reserved_bytes
    complaint = f"{own.name}: {format_size(over)} above what is reserved" if over > 0 else ""
    return BudgetCheck(
        own.name, own.reserved_bytes, own.counted_bytes, own.counted_bytes, over <= 0, complaint
    )


def worker_bytes(coordinator: Coordinator) -> dict[str, int]:
    """Returns what each worker occupies, as its last heartbeat said."""
    return {
        str(worker): life.hosting.attached.measurement.total_bytes
        for worker, life in coordinator.lives.items()
        if life.hosting.attached is not None and life.hosting.attached.measurement is not None
    }


def what_is_busy(coordinator: Coordinator) -> Iterator[str]:
    """Iterates over what a request still holds, in words."""
    for request in coordinator.engine.running:
        yield f"request {request.request_id}"
    for worker, life in coordinator.lives.items():
        attached = life.hosting.attached
        if attached is None or attached.heartbeat is None:
            yield f"worker {worker}, which is not attached"
            continue
        for lane in attached.heartbeat.lanes:
            if lane.is_busy:
                yield f"a lane of stage {lane.stage_id}"


async def beat(coordinator: Coordinator, give_up_at: float) -> None:
    """Waits until every attached worker has said once more how it is."""
    seen = _heartbeats(coordinator)
    while time.monotonic() < give_up_at:
        now = _heartbeats(coordinator)
        if all(worker not in now or now[worker] > count for worker, count in seen.items()):
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def until_quiet(coordinator: Coordinator, timeout_seconds: float) -> tuple[str, ...]:
    """Waits until no request holds anything, here or in a worker; returns what still does."""
    give_up_at = time.monotonic() + timeout_seconds
    while True:
        # What a heartbeat said before the request ended says nothing of its lanes.
        await beat(coordinator, give_up_at)
        busy = tuple(what_is_busy(coordinator))
        if not busy or time.monotonic() >= give_up_at:
            return busy


async def until_back(
    coordinator: Coordinator, before: Mapping[str, int], timeout_seconds: float
) -> dict[str, int]:
    """Waits until each worker occupies what it did before; returns by how much one does not."""
    give_up_at = time.monotonic() + timeout_seconds
    while True:
        await beat(coordinator, give_up_at)
        now = worker_bytes(coordinator)
        above = {
            worker: now.get(worker, 0) - size_bytes
            for worker, size_bytes in before.items()
            if now.get(worker, 0) - size_bytes > RETURN_TOLERANCE_BYTES
        }
        if not above or time.monotonic() >= give_up_at:
            return above


def processes_of(coordinator: Coordinator) -> set[ProcessIdentity]:
    """Returns every process of the workers, with what they started."""
    workers = from_message(coordinator.processes()).workers
    return {
        identity
        for worker in workers
        for identity in (worker.identity, *descendants_of(worker.identity))
    }


def what_is_left(settings: Settings, processes: Iterable[ProcessIdentity]) -> list[str]:
    """Returns what a coordinator that stopped has left behind."""
    left = [f"process {item.pid}" for item in processes if is_alive(item)]
    if (settings.state_folder / FILE_NAME).exists():
        left.append(FILE_NAME)
    return left


def _heartbeats(coordinator: Coordinator) -> dict[str, tuple[int, int]]:
    """Returns how often each worker said how it is, by its present life."""
    return {
        str(worker): (life.hosting.attached.incarnation, life.hosting.attached.heartbeat_count)
        for worker, life in coordinator.lives.items()
        if life.hosting.attached is not None
    }
