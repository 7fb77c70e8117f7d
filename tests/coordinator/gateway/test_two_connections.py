"""Control beside bulk: orders are answered at once while a narrow link is full of items."""

import asyncio
import contextlib
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.gateway.service import Expectation
from coordinator.reach.starting import StartOrder, process_starter
from stagewire.credit import Credit
from stagewire.errors import StageNotResidentError
from stagewire.items import to_chunks
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import gateway_pb2 as pb
from stagewire.v1 import tensor_pb2
from testkit.attaching import TOKEN
from testkit.relay import relay

pytestmark = pytest.mark.integration

LINK_BYTES_PER_SECOND = 330e6
BULK_BYTES = 64 << 20
ITEM_BYTES = 4 << 20
ROUND_TRIP_SECONDS = 0.010
NOISE = 10
"""The machine that runs the tests may be busy; the figure itself is printed."""


class Sending:
    """An execution that takes items; knows how many more it may be sent."""

    def __init__(self):
        self.left = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self.changed = asyncio.Event()
        self.ended = asyncio.get_running_loop().create_future()

    def credit(self, grant):
        self.left.grant(grant.items, grant.size_bytes)
        self.changed.set()

    def done(self, receipt):
        self.ended.set_result(receipt)

    def failed(self, error):
        self.ended.set_exception(error)


@contextlib.asynccontextmanager
async def worker_over(address, gateway, folder):
    """Starts a fake worker that reaches the gateway over a link; its stage takes bytes."""
    order = StartOrder(
        Path(sys.executable),
        "stagewire.worker.fake",
        folder / "worker.log",
        1,
        {"address": address, "token": TOKEN, "worker_id": "a", "parent_pid": os.getpid()},
    )
    process = process_starter().start(order)
    try:
        attached = await gateway.expect(
            TOKEN, Expectation(WorkerId("a"), Incarnation(1), process.pid, "", {})
        )
        port = tensor_pb2.PortType(
            name="x",
            data_type=tensor_pb2.DATA_TYPE_UINT8,
            dimensions=[tensor_pb2.Dimension(name="n", max_extent=ITEM_BYTES)],
            is_stream=True,
        )
        await attached.load(
            pb.LoadStage(
                stage_id="sink", executor="fake", device="cpu", inputs=[port], concurrency=1
            )
        )
        yield attached
    finally:
        await process.aclose()


def make_bulk():
    """Returns 64 MiB as items in chunks; checksums are the work of a lane, not of the loop."""
    item = np.zeros(ITEM_BYTES, np.uint8)
    count = BULK_BYTES // ITEM_BYTES
    return [list(to_chunks("x", sequence, item)) for sequence in range(count)]


async def send(attached, execution_id, items):
    """Sends items to the stage, as fast as its credit allows."""
    events = Sending()
    attached.begin(execution_id, events, pb.StartExecution(stage_id="sink"))
    for chunks in items:
        while not events.left.is_open:
            events.changed.clear()
            await events.changed.wait()
        events.left.spend(ITEM_BYTES)
        for chunk in chunks:
            message = pb.ExchangeMessage(execution_id=execution_id, item=chunk.item)
            attached.send(message, chunk.payload)
    end = pb.EndOfPort(port="x")
    attached.send(pb.ExchangeMessage(execution_id=execution_id, end_of_port=end))
    return await events.ended


async def round_trip(attached):
    """Orders something that the worker's loader answers at once; returns the seconds."""
    began = time.perf_counter()
    with pytest.raises(StageNotResidentError):
        await attached.prove("nowhere")
    return time.perf_counter() - began


async def test_orders_pass_while_a_narrow_link_is_full_of_items(gateway, tmp_path, capsys):
    items, trips, seconds = make_bulk(), [], []
    with relay(gateway.address, LINK_BYTES_PER_SECOND) as link:
        async with worker_over(link.address, gateway, tmp_path) as attached:
            await send(attached, 1, items[:2])
            for execution_id in range(2, 5):
                began = time.perf_counter()
                bulk = asyncio.create_task(send(attached, execution_id, items))
                while not bulk.done():
                    trips.append(await round_trip(attached))
                assert (await bulk).input_bytes == BULK_BYTES
                seconds.append(time.perf_counter() - began)

    p99 = statistics.quantiles(trips, n=100)[98]
    with capsys.disabled():
        print(
            f"\ncontrol beside {BULK_BYTES >> 20} MiB in {min(seconds):.2f} s, three times:"
            f" {len(trips)} round trips, median {statistics.median(trips) * 1e3:.1f} ms,"
            f" p99 {p99 * 1e3:.1f} ms"
        )
    assert link.connections == 2
    assert min(seconds) > 0.9 * BULK_BYTES / LINK_BYTES_PER_SECOND
    assert p99 < ROUND_TRIP_SECONDS * NOISE
