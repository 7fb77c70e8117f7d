"""The table of limits, second part: what keeps account of requests, credit and sessions."""

from pathlib import Path
from typing import Any, Final

from coordinator.facts.ids import Incarnation, PipelineId, RequestId, SessionId, StageId
from coordinator.pipeline.flow import Flow
from coordinator.pipeline.known_ids import KnownIds
from coordinator.pipeline.sessions import Sessions, check_lease
from coordinator.pipeline.suspects import Suspects
from coordinator.pipeline.topology import Endpoint, Source
from stagewire.descriptor import DataType
from stagewire.errors import (
    FieldInvalidError,
    PayloadCorruptError,
    SessionsFullError,
    StageFaultError,
    WorkerLostError,
)
from stagewire.ports import Dimension, Port
from stagewire.worker.sessions import StageSession
from testkit.limit_cases import item_of
from testkit.limit_table import Act, Bounded, Refused


def _flow() -> Flow:
    port = Port("x", DataType.UINT8, (Dimension("n", 1 << 30),), is_stream=True)
    target = Endpoint(StageId("one"), "x")
    return Flow(Source(Endpoint(None, "x"), port, (target,)), (target,))


def _under_way(sizes: list[int]) -> Act:
    """Sends items without waiting for credit, the last of which is one too many or not."""
    flow = _flow()
    items = []
    for sequence, size in enumerate(sizes):
        offset = 0
        while True:
            piece = min(size - offset, 1 << 31)
            item = item_of(DataType.UINT8, (size,), size, sequence=sequence)
            item.payload_size_bytes = piece
            item.checksum = 0
            items.append(item)
            offset += piece
            if offset == size:
                break
    for item in items[:-1]:
        flow.accept(item)
    return lambda: flow.accept(items[-1])


def _given_back(items: int, size_bytes: int) -> Act:
    flow = _flow()
    flow.accept(item_of(DataType.UINT8, (1,), 1, payload_size_bytes=1))
    return lambda: flow.finish_items(Endpoint(StageId("one"), "x"), items, size_bytes)


def _remembered(count: int, _: Path) -> Any:
    def use() -> int:
        ids = KnownIds()
        for number in range(count):
            request = RequestId(f"r{number}")
            ids.begin(request, 1)
            ids.end(request, has_failed=False)
        return len(ids._ended)

    return use


def _suspected(count: int, _: Path) -> Any:
    def lose() -> int:
        suspects = Suspects()
        for number in range(count):
            request = RequestId(f"r{number}")
            suspects.judge(
                request, WorkerLostError("lost"), Incarnation(number), frozenset({request})
            )
        return len(suspects)

    return lose


def _sessions(count: int, _: Path) -> Act:
    sessions: Any = Sessions()
    for number in range(count - 1):
        sessions.open(SessionId(f"s{number}"), PipelineId("p"), (), 60.0, 0.0)
    return lambda: sessions.open(SessionId("last"), PipelineId("p"), (), 60.0, 0.0)


def _kept_state(size: int, _: Path) -> Act:
    session = StageSession("one", "s")
    return lambda: session.keep(object(), size_bytes=size)


CASES: Final[tuple[Refused | Bounded, ...]] = (
    Refused(
        "WINDOW_ITEMS",
        "items without credit",
        lambda size, _: _under_way([1] * size),
        (),
        PayloadCorruptError,
        "more than its credit",
    ),
    Refused(
        "WINDOW_BYTES",
        "bytes without credit",
        lambda size, _: _under_way([size - 1, 1]),
        (2**30,),
        PayloadCorruptError,
        "more than its credit",
    ),
    Refused(
        "WINDOW_ITEMS",
        "items that are given back",
        lambda size, _: _given_back(1 if size == 64 else size, 1),
        (2**31, 2**63),
        PayloadCorruptError,
    ),
    Refused(
        "WINDOW_BYTES",
        "bytes that are given back",
        lambda size, _: _given_back(1, 1 if size == 8 << 20 else size),
        (2**31, 2**63),
        PayloadCorruptError,
    ),
    Bounded("REMEMBERED_REQUESTS", "ids of ended requests", _remembered, (4096, 4097, 9000)),
    Bounded("SUSPECTS", "requests under suspicion", _suspected, (1024, 1025, 5000)),
    Refused("SESSIONS", "open sessions", _sessions, (), SessionsFullError),
    Bounded("SESSION_SECONDS", "lease of no time", lambda _, __: lambda: check_lease(None), (0,)),
    Refused(
        "SESSION_LONGEST_SECONDS",
        "lease",
        lambda size, _: lambda: check_lease(size),
        (2**31, 2**63, 0, -1),
        FieldInvalidError,
    ),
    Refused(
        "SESSION_STATE_BYTES", "state of a stage", _kept_state, (2**31, 2**63), StageFaultError
    ),
)
