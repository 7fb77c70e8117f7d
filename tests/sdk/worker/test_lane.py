"""A lane and its executions: order, waiting, credit, cancels, and what executors get wrong."""

import asyncio
import math
import threading

import numpy as np
import pytest

from stagewire.credit import Credit
from stagewire.envelope import open_envelope
from stagewire.errors import OutputContractError, PayloadCorruptError, TensorMismatchError
from stagewire.items import to_chunks
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.v1 import gateway_pb2 as pb
from stagewire.worker.execution import LaneExecution
from stagewire.worker.executor import StageOrder
from stagewire.worker.lane import Lane
from stagewire.worker.outbox import Outbox

pytestmark = pytest.mark.unit

ITEM = np.ones(4, np.float32)
FLOATS = (Dimension("n", 64),)
STREAM = Port("x", DataType.FLOAT32, FLOATS, True)
STREAMED = (Port("y", DataType.FLOAT32, FLOATS, True),)
SECONDS = 30


class Stage:
    """A loaded stage that runs a function of the test."""

    def __init__(self, run):
        self.run = run
        self.thread_settings = {}

    def example(self):
        return {}

    def release(self):
        pass


class Bench:
    """One lane, and the other side of it."""

    def __init__(self, run, *, concurrency=1, outputs=STREAMED):
        self.order = StageOrder("one", "test", "cpu", inputs=(STREAM,), outputs=outputs)
        self.outbox = Outbox(asyncio.get_running_loop())
        self.ended, self.acknowledged, self.rests = [], [], 0
        self.has_ended = threading.Condition()
        self.lane = Lane(
            "one", Stage(run), concurrency, self.outbox, self.note_ended, self.note_rest
        )

    def note_rest(self):
        self.rests += 1

    def note_ended(self, execution, freed_bytes):
        with self.has_ended:
            self.ended.append((execution.execution_id, freed_bytes))
            self.has_ended.notify_all()

    def execution(self, number=1, *, deadline=None, credit=None):
        return LaneExecution(
            number,
            self.order,
            deadline=deadline,
            credits={"y": credit or Credit(WINDOW_ITEMS, WINDOW_BYTES)},
            outbox=self.outbox,
            acknowledge=lambda *values: self.acknowledged.append(values),
        )

    def wait_for(self, count):
        with self.has_ended:
            assert self.has_ended.wait_for(lambda: len(self.ended) >= count, SECONDS)

    async def until_ended(self, count=1):
        await asyncio.to_thread(self.wait_for, count)

    async def sent(self):
        envelope, _ = open_envelope(await self.outbox.next_envelope(), pb.ExchangeRequest())
        return list(envelope.messages)


def feed(execution, count=1, value=ITEM):
    for sequence in range(count):
        for chunk in to_chunks("x", sequence, value):
            execution.push(chunk.item, chunk.payload)


@pytest.fixture
async def bench():
    made = []

    def make(run, **options):
        made.append(Bench(run, **options))
        return made[-1]

    yield make
    for it in made:
        await asyncio.to_thread(it.lane.close)


def echo(execution):
    for value in execution.items("x"):
        execution.send("y", value)


async def test_items_go_through_in_order_and_every_port_ends(bench):
    it = bench(echo)
    execution = it.execution()
    feed(execution, 3)
    execution.end("x")

    it.lane.put(execution)
    await it.until_ended()

    kinds = [message.WhichOneof("message") for message in await it.sent()]
    assert kinds == ["item", "item", "item", "end_of_port", "execution_done"]
    assert it.ended == [(1, 0)]


async def test_executions_run_first_in_first_out(bench):
    seen = []
    it = bench(lambda execution: seen.append(execution.execution_id), outputs=())
    for number in range(5):
        it.lane.put(it.execution(number))

    await it.until_ended(5)

    assert seen == [0, 1, 2, 3, 4]


async def test_as_many_run_at_once_as_the_plan_allows(bench):
    together = threading.Barrier(2)
    it = bench(lambda _: together.wait(SECONDS), concurrency=2, outputs=())
    it.lane.put(it.execution(1))
    it.lane.put(it.execution(2))

    await it.until_ended(2)

    assert not together.broken


async def test_an_execution_in_the_queue_is_withdrawn_and_one_that_runs_is_not(bench):
    begun, may_end = threading.Event(), threading.Event()

    def hold(_):
        begun.set()
        assert may_end.wait(SECONDS)

    it = bench(hold, outputs=())
    first, second = it.execution(1), it.execution(2)
    it.lane.put(first)
    it.lane.put(second)
    await asyncio.to_thread(begun.wait, SECONDS)

    assert not it.lane.withdraw(first)
    assert it.lane.withdraw(second)
    assert not it.lane.withdraw(second)
    may_end.set()
    await it.until_ended()

    assert it.ended == [(1, 0)]


async def test_a_cancel_ends_a_wait_and_frees_what_was_held(bench):
    begun = threading.Event()

    def wait_for_three(execution):
        execution.receive("x")
        begun.set()
        execution.receive("x")
        execution.receive("x")

    it = bench(wait_for_three)
    execution = it.execution()
    feed(execution, 2)
    it.lane.put(execution)
    await asyncio.to_thread(begun.wait, SECONDS)

    execution.cancel()
    await it.until_ended()

    assert it.ended[0][1] <= 32
    assert not any(slot.is_busy for slot in it.lane.slots)


async def test_a_lane_that_waits_for_input_is_not_busy_and_one_that_computes_is(bench):
    got_one, may_go_on = threading.Event(), threading.Event()

    def compute(execution):
        for _ in execution.items("x"):
            got_one.set()
            assert may_go_on.wait(SECONDS)

    it = bench(compute)
    execution = it.execution()
    it.lane.put(execution)
    feed(execution)
    await asyncio.to_thread(got_one.wait, SECONDS)
    assert any(slot.is_busy for slot in it.lane.slots)

    may_go_on.set()
    execution.end("x")
    await it.until_ended()

    assert not any(slot.is_busy for slot in it.lane.slots)


async def test_a_producer_waits_for_credit(bench):
    it = bench(echo)
    execution = it.execution(credit=Credit(1, 1))
    feed(execution, 2)
    execution.end("x")
    it.lane.put(execution)
    [first] = await it.sent()
    assert first.item.sequence == 0

    execution.grant("y", 1, WINDOW_BYTES)
    await it.until_ended()

    assert [m.WhichOneof("message") for m in await it.sent()] == [
        "item",
        "end_of_port",
        "execution_done",
    ]


async def test_a_deadline_ends_a_wait(bench):
    it = bench(lambda execution: execution.receive("x"))
    execution = it.execution(deadline=-math.inf)

    it.lane.put(execution)
    await it.until_ended()

    [failed] = await it.sent()
    assert failed.execution_failed.failure.reason == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (lambda execution: execution.send("z", ITEM), "OUTPUT_CONTRACT"),
        (lambda execution: execution.send("y", ITEM[None]), "OUTPUT_CONTRACT"),
        (lambda execution: execution.send("y", ITEM.astype(np.float64)), "OUTPUT_CONTRACT"),
        (lambda execution: execution.send("y", np.ones(65, np.float32)), "OUTPUT_CONTRACT"),
        (lambda execution: [execution.send("y", ITEM) for _ in range(2)], "OUTPUT_CONTRACT"),
        (lambda execution: None, "OUTPUT_CONTRACT"),
        (lambda execution: 1 / 0, "STAGE_FAULT"),
        (lambda execution: {}[execution], "STAGE_FAULT"),
        (lambda execution: np.ones(1 << 60), "STAGE_FAULT"),
    ],
    ids=["port", "rank", "type", "extent", "twice", "missing", "raises", "lookup", "memory"],
)
async def test_what_an_executor_gets_wrong_fails_one_execution(bench, run, reason):
    it = bench(run, outputs=(Port("y", DataType.FLOAT32, FLOATS, False),))
    it.lane.put(it.execution(1))
    it.lane.put(it.execution(2))

    await it.until_ended(2)

    failures = [
        m.execution_failed.failure for m in await it.sent() if m.HasField("execution_failed")
    ]
    assert [failure.reason for failure in failures] == [reason] * 2
    for word in ("Error", "division", "/", "0x"):
        assert word not in failures[0].message


async def test_inputs_that_break_the_port_are_refused_before_the_executor_sees_them(bench):
    it = bench(echo)
    execution = it.execution()

    with pytest.raises(TensorMismatchError):
        feed(execution, value=ITEM.astype(np.int8))
    with pytest.raises(PayloadCorruptError):
        it.execution().end("y")
    it.lane.put(execution)
    execution.end("x")
    await it.until_ended()


async def test_an_output_of_the_wrong_form_is_told_to_the_executor_too(bench):
    caught = []

    def send(execution):
        with pytest.raises(OutputContractError) as error:
            execution.send("y", ITEM[None])
        caught.append(error.value)
        execution.send("y", ITEM)

    it = bench(send)
    it.lane.put(it.execution())
    await it.until_ended()

    assert "one" in caught[0].message


async def test_an_executor_that_leaves_the_interpreter_fails_one_execution_and_not_the_lane(bench):
    calls = []

    def run(execution):
        calls.append(execution.execution_id)
        if len(calls) == 1:
            raise SystemExit(3)
        echo(execution)

    it = bench(run)
    for number in (1, 2):
        execution = it.execution(number)
        execution.end("x")
        it.lane.put(execution)
    await it.until_ended(2)

    kinds = [message.WhichOneof("message") for message in await it.sent()]
    assert kinds == ["execution_failed", "end_of_port", "execution_done"]
