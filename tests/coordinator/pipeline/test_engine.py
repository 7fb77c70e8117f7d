"""Requests against real incarnations whose worker is this test: admission, deadlines, ends."""

import asyncio

import numpy as np
import pytest

from coordinator.facts.ids import Incarnation, PipelineId
from coordinator.facts.ports import DataTypeName, Extent, PortType
from coordinator.facts.proof import Grade, Verdict
from coordinator.gateway.incarnation import Attached
from coordinator.pipeline.engine import Engine, LaneLimit
from coordinator.pipeline.history import StageHistory
from coordinator.pipeline.hosted_stage import HostedStage
from coordinator.pipeline.topology import Endpoint, make_topology
from stagewire import ports
from stagewire.envelope import open_envelope
from stagewire.errors import (
    CancelledError,
    DeadlineExceededError,
    ShuttingDownError,
    StageError,
    StageStartingError,
    WorkerLostError,
)
from stagewire.items import to_chunks
from stagewire.limits import REMEMBERED_REQUESTS, REQUESTS, WINDOW_ITEMS
from stagewire.tensor import DataType
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds
from testkit.waiting import until

pytestmark = pytest.mark.unit

ITEM = np.ones(4, np.float32)


class Sink:
    """Keeps what a client would get."""

    def __init__(self):
        self.items, self.ends, self.credits = [], [], []
        self.error = None
        self.has_finished = False

    def item(self, port, item, payload, *, is_whole):
        self.items.append((port, bytes(payload)))

    def end(self, port, item_count):
        self.ends.append((port, item_count))

    def input_credit(self, port, items, size_bytes):
        self.credits.append((port, items, size_bytes))

    def finished(self, request):
        self.has_finished = True

    def failed(self, error):
        self.error = error


class Bench:
    """Stages `one` and `two` in a chain, each on a worker of its own."""

    def __init__(self, *, concurrency=2, queue=2, deadlines=(30.0, 30.0)):
        names = ("one", "two")
        floats = PortType(DataTypeName.FLOAT32, (Extent("n", 64),), True)
        topology = make_topology(
            PipelineId("p"),
            names,
            {name: {"y": floats} for name in names},
            {name: {"x": floats} for name in names},
            [(("one", "y"), ("two", "x"))],
            {"x": ("one", "x")},
            {"y": ("two", "y")},
        )
        self.attached = {
            name: Attached(f"worker-{name}", Incarnation(number), pb.Hello())
            for number, name in enumerate(names, start=1)
        }
        self.histories = {name: StageHistory() for name in names}
        self.deadlines = dict(zip(names, deadlines, strict=True))
        self.missing = None
        self.engine = Engine(
            {PipelineId("p"): topology},
            {name: LaneLimit(concurrency, queue) for name in names},
            self,
        )

    def host_of(self, stage):
        if self.missing is not None:
            raise self.missing
        return HostedStage(
            stage,
            self.attached[stage],
            "cpu",
            Verdict.FULL,
            Grade.B,
            self.deadlines[stage],
            self.histories[stage],
        )

    def open(self, **options):
        sink = Sink()
        return self.engine.open("p", sink, **options), sink

    async def sent_to(self, stage):
        """Returns the messages that wait for a worker."""
        envelope, _ = open_envelope(
            await self.attached[stage].next_envelope(), pb.ExchangeResponse()
        )
        return list(envelope.messages)

    def say(self, stage, request, **fields):
        """Sends one message of a worker about its execution of a request."""
        execution_id = request.runs[stage].execution_id
        message = pb.ExchangeMessage(execution_id=execution_id, **fields)
        self.attached[stage].exchange(pb.ExchangeRequest(messages=[message]), memoryview(b""))

    def give(self, stage, request, sequence=0):
        """Sends one output item of a stage."""
        [chunk] = to_chunks("y", sequence, ITEM)
        message = pb.ExchangeMessage(execution_id=request.runs[stage].execution_id, item=chunk.item)
        self.attached[stage].exchange(pb.ExchangeRequest(messages=[message]), chunk.payload)

    def end(self, stage, request, count, busy_seconds=0.1):
        self.say(stage, request, end_of_port=pb.EndOfPort(port="y", item_count=count))
        receipt = pb.ExecutionReceipt(busy=to_duration(busy_seconds))
        self.say(stage, request, execution_done=pb.ExecutionDone(receipt=receipt))

    def feed(self, request, count=1):
        for sequence in range(count):
            [chunk] = to_chunks("x", sequence, ITEM)
            request.take(Endpoint(None, "x"), chunk.item, chunk.payload)

    def finish(self, request):
        self.feed(request)
        request.end_inputs()
        for stage in ("one", "two"):
            self.give(stage, request)
            self.end(stage, request, 1)


@pytest.fixture
async def bench():
    return Bench()


async def test_items_pass_through_both_stages_and_the_request_settles(bench):
    request, sink = bench.open()
    bench.finish(request)

    assert sink.has_finished
    assert sink.items == [("y", ITEM.tobytes())]
    assert sink.ends == [("y", 1)]
    await request.settled
    assert [m.WhichOneof("message") for m in await bench.sent_to("two")] == [
        "start_execution",
        "item",
        "end_of_port",
    ]


async def test_time_left_shrinks_along_the_stages():
    bench = Bench(deadlines=(30.0, 5.0))
    request, _ = bench.open(timeout_seconds=20)
    bench.feed(request)
    bench.give("one", request)

    [first, _], [second, _] = await bench.sent_to("one"), await bench.sent_to("two")

    assert 19 < to_seconds(first.start_execution.time_left) <= 20
    assert 4 < to_seconds(second.start_execution.time_left) <= 5
    request.fail(CancelledError("the test ends"))


async def test_a_stage_whose_usual_time_is_not_left_is_not_started(bench):
    for _ in range(5):
        bench.histories["two"].note(8.0)
    request, sink = bench.open(timeout_seconds=6)
    bench.feed(request)
    assert request.runs["one"].is_started

    bench.give("one", request)

    assert isinstance(sink.error, DeadlineExceededError)
    assert sink.error.facts["stage"] == "two"
    assert not request.runs["two"].is_started


async def test_a_request_whose_time_is_over_starts_nothing(bench):
    request, sink = bench.open(timeout_seconds=0)

    bench.feed(request)

    assert isinstance(sink.error, DeadlineExceededError)
    assert not any(run.is_started for run in request.runs.values())
    await request.settled


async def test_the_deadline_of_a_stage_ends_the_request(bench):
    bench.deadlines["one"] = 0.01
    request, sink = bench.open()
    bench.feed(request)

    await until(lambda: sink.error is not None)

    assert isinstance(sink.error, DeadlineExceededError)
    cancel = await bench.attached["one"].next_order()
    assert cancel.cancel_execution.execution_id == request.runs["one"].execution_id
    assert not request.settled.done()
    bench.attached["one"].take(
        pb.AttachRequest(
            execution_cancelled=pb.ExecutionCancelled(
                execution_id=request.runs["one"].execution_id, freed_bytes=5
            )
        )
    )
    await request.settled
    assert request.freed_bytes == 5


async def test_a_failed_stage_cancels_the_others_and_waits_until_they_hold_nothing(bench):
    request, sink = bench.open()
    bench.feed(request)
    bench.give("one", request)

    bench.attached["two"].fence(WorkerLostError("gone"))

    assert isinstance(sink.error, WorkerLostError)
    assert not request.settled.done()
    # Its end may also come as any other: it was ending already when the cancel arrived.
    bench.end("one", request, 1)
    await request.settled


async def test_a_worker_that_was_lost_before_it_began_fails_the_request(bench):
    request, sink = bench.open()
    bench.attached["one"].fence(WorkerLostError("gone"))

    bench.feed(request)

    assert isinstance(sink.error, WorkerLostError)
    await request.settled


async def test_a_request_ends_once(bench):
    request, sink = bench.open()
    first = CancelledError("first")
    request.fail(first)
    request.fail(CancelledError("second"))
    bench.finish(request)

    assert sink.error is first
    assert not sink.has_finished
    assert not sink.items
    await request.settled


async def test_outputs_must_end_before_their_stage(bench):
    request, sink = bench.open()
    bench.feed(request)

    bench.say("one", request, execution_done=pb.ExecutionDone())

    assert sink.error.reason == "OUTPUT_CONTRACT"
    assert "one.y" in sink.error.message


async def test_an_output_that_the_plan_does_not_have_is_the_fault_of_the_stage(bench):
    request, sink = bench.open()
    bench.feed(request)
    [chunk] = to_chunks("z", 0, ITEM)

    bench.say("one", request, item=chunk.item)

    assert sink.error.reason == "OUTPUT_CONTRACT"


async def test_credit_goes_back_through_the_stages_to_the_client(bench):
    request, sink = bench.open()
    bench.feed(request, 3)
    bench.give("one", request)

    one, two = (request.runs[name].execution_id for name in ("one", "two"))
    for worker, execution_id in (("one", one), ("two", two)):
        bench.attached[worker].take(
            pb.AttachRequest(
                credit_grant=pb.CreditGrant(
                    execution_id=execution_id, port="x", items=1, size_bytes=16
                )
            )
        )

    assert sink.credits == [("x", 1, 16)]
    grant = await bench.attached["one"].next_order()
    assert (grant.credit_grant.port, grant.credit_grant.items) == ("y", 1)
    request.fail(CancelledError("the test ends"))


async def test_lanes_take_as_many_as_the_plan_says_and_one_more_when_one_has_settled():
    bench = Bench(concurrency=1, queue=1)
    first, _ = bench.open()
    bench.open()

    with pytest.raises(StageError) as caught:
        bench.open()

    assert caught.value.reason == "LANE_FULL"
    assert caught.value.retry_delay_ms > 0
    bench.finish(first)
    await first.settled
    # The engine hears of it in a task of its own.
    await asyncio.sleep(0)
    bench.open()


async def test_one_request_more_than_may_run_is_refused():
    bench = Bench(concurrency=REQUESTS, queue=2)
    requests = [bench.open()[0] for _ in range(REQUESTS)]

    with pytest.raises(StageError) as caught:
        bench.open()

    assert caught.value.reason == "LANE_FULL"
    assert f"{REQUESTS} requests are running" in caught.value.message
    assert caught.value.retry_delay_ms > 0
    requests[0].fail(CancelledError("done"))
    await requests[0].settled
    await asyncio.sleep(0)
    bench.open()


async def test_a_stage_that_is_not_ready_refuses_before_anything_is_held(bench):
    bench.missing = StageStartingError("starting", retry_delay_ms=5)

    with pytest.raises(StageStartingError):
        bench.open(request_id="same")

    assert not list(bench.engine.running)
    bench.missing = None
    bench.open(request_id="same")


async def test_only_so_many_ids_are_remembered():
    bench = Bench(concurrency=64, queue=1)

    async def use(request_id):
        request, _ = bench.open(request_id=request_id)
        request.fail(CancelledError("done"))
        await request.settled
        await asyncio.sleep(0)

    for number in range(REMEMBERED_REQUESTS + 1):
        await use(f"r{number}")

    await use("r0")
    with pytest.raises(StageError) as caught:
        await use(f"r{REMEMBERED_REQUESTS}")
    assert caught.value.reason == "REQUEST_DUPLICATE"


async def test_draining_waits_and_then_cuts_short(bench):
    quick, _ = bench.open()
    stuck, sink = bench.open()
    bench.feed(stuck)
    draining = asyncio.create_task(bench.engine.drain(0.05))
    await asyncio.sleep(0)
    with pytest.raises(StageError) as caught:
        bench.open()
    bench.finish(quick)

    assert caught.value.reason == "SHUTTING_DOWN"
    assert await draining == 1
    assert sink.error.reason == "SHUTTING_DOWN"


def test_ports_of_the_wire_are_ports_of_the_plan():
    port = ports.Port("x", DataType.FLOAT32, (ports.Dimension("n", 64),), True)
    assert ports.from_message(ports.to_message(port)) == port


async def test_a_consumer_that_ends_early_does_not_hold_its_source_back(bench):
    request, sink = bench.open()
    bench.feed(request)
    bench.give("one", request)
    bench.end("two", request, 0)

    for sequence in range(1, 2 * WINDOW_ITEMS):
        bench.give("one", request, sequence)
    request.end_inputs()
    bench.end("one", request, 2 * WINDOW_ITEMS)

    assert sink.has_finished


async def test_credit_that_a_client_was_not_given_ends_its_request(bench):
    request, sink = bench.open()
    bench.feed(request)
    bench.give("one", request)
    bench.give("two", request)

    request.give_back(Endpoint(None, "y"), 2, 32)

    assert sink.error.reason == "PAYLOAD_CORRUPT"


async def test_credit_that_a_worker_was_not_given_is_the_fault_of_its_stage(bench):
    request, sink = bench.open()
    bench.feed(request)

    request.give_back(Endpoint("one", "x"), 5, 80)

    assert sink.error.reason == "OUTPUT_CONTRACT"


@pytest.mark.parametrize("what", ["credit", "end", "credit of an output that is not wanted"])
async def test_a_port_that_does_not_exist_is_refused_by_name(bench, what):
    outputs = ["y"]
    request, sink = bench.open(outputs=outputs)
    if what == "end":
        request.take_end(Endpoint(None, "nope"), None)
    else:
        request.give_back(Endpoint(None, "nope"), 1, 1)

    assert sink.error.reason == "FIELD_INVALID"
    assert "nope" in sink.error.message


async def test_a_request_without_a_deadline_gets_one_from_its_stages():
    bench = Bench(deadlines=(0.05, 0.05))
    _, sink = bench.open()

    await until(lambda: sink.error is not None)

    assert sink.error.reason == "DEADLINE_EXCEEDED"


async def test_after_long_inputs_a_short_one_still_gets_its_chance(bench):
    for seconds in (20, 20, 20, 20, 20, 0.2):
        bench.histories["one"].note(seconds)

    request, sink = bench.open(timeout_seconds=5)
    bench.feed(request)

    assert sink.error is None
    request.fail(ShuttingDownError("the test has ended"))
