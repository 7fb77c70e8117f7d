"""Rows: the three facts about each device side by side, and what workers execute on it."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordinator.facts.ids import DeviceId, WorkerId


def device_kind(device: DeviceId) -> str:
    """Returns the kind of a device: `cuda` of `cuda:0`."""
    return device.partition(":")[0]


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    """What one executor of a worker can run on one device."""

    worker_id: WorkerId
    executor: str
    device: DeviceId
    formats: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    library_version: str = ""
    unavailable_reason: str = ""
    """Why it cannot run anything, and what to change; empty when it can."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way to reach a device: a worker that can be started for it, or why it cannot."""

    worker_id: WorkerId
    device: DeviceId
    unavailable_reason: str = ""
    """Why it leads nowhere, and what to change; empty when it is available."""


class Answer(enum.StrEnum):
    """Whether a fact holds."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DeviceFact:
    """One fact about a device."""

    answer: Answer
    detail: str
    """What was found, or why not and what to change."""


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device and the three facts about it."""

    device: DeviceId
    name: str
    present: DeviceFact
    reachable: DeviceFact
    runnable: DeviceFact
    capabilities: tuple[CapabilityRow, ...] = ()


def device_row(
    device: DeviceId,
    name: str,
    present: DeviceFact,
    routes: Iterable[Route] | None,
    capabilities: Iterable[CapabilityRow] | None,
) -> DeviceRow:
    """Returns the row of a device.

    `routes` is None without a plan, `capabilities` is None without a running coordinator: neither
    is the same as there being none.
    """
    own = None if capabilities is None else [row for row in capabilities if row.device == device]
    own_routes = None if routes is None else [item for item in routes if item.device == device]
    return DeviceRow(
        device, name, present, _reachable(own_routes), _runnable(own), tuple(own or ())
    )


def _reachable(routes: Sequence[Route] | None) -> DeviceFact:
    if routes is None:
        return DeviceFact(Answer.UNKNOWN, "no plan was given; name one with --plan")
    if not routes:
        return DeviceFact(Answer.NO, "no worker of the plan is for it; add one")
    available = [route for route in routes if not route.unavailable_reason]
    if available:
        return DeviceFact(Answer.YES, "by " + ", ".join(route.worker_id for route in available))
    reasons = (f"{route.worker_id}: {route.unavailable_reason}" for route in routes)
    return DeviceFact(Answer.NO, "; ".join(reasons))


def _runnable(rows: Sequence[CapabilityRow] | None) -> DeviceFact:
    if rows is None:
        return DeviceFact(Answer.UNKNOWN, "no coordinator runs; start one with `coordinator up`")
    if not rows:
        return DeviceFact(Answer.NO, "no attached worker executes anything on it")
    able = [row for row in rows if not row.unavailable_reason]
    if able:
        details = (f"{row.worker_id} {row.executor} {_what(row)}".rstrip() for row in able)
        return DeviceFact(Answer.YES, "; ".join(details))
    reasons = (f"{row.worker_id} {row.executor}: {row.unavailable_reason}" for row in rows)
    return DeviceFact(Answer.NO, "; ".join(reasons))


def _what(row: CapabilityRow) -> str:
    return ", ".join((*row.formats, *row.functions))
