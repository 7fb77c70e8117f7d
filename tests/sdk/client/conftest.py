"""A real server of the public service that echoes, for tests of the client.

Pipelines:
    echo         two inputs, `a` and `b`; what comes in goes out on the output of the same name
    stuck        accepts, then does nothing
    late         echoes two items, then fails
    frugal       echoes; grants the first item of credit when `server.allow` is set
    damaged      echoes with a wrong checksum or payload
    greedy       sends more than its credit
    silent       ends without a summary
    mute         sends an item before it has accepted
    short        says that more items were sent than there were
    gather       counts what comes in and answers only at the end
    ended        ends as cancelled, by itself

`server.failures` are the failures of the next requests, one each, whatever their pipeline.
"""

import asyncio
import functools
import threading
from collections import deque

import grpc
import pytest

from stagewire import frame, items, status
from stagewire.channel import make_server
from stagewire.credit import Credit
from stagewire.errors import (
    CancelledError,
    LaneFullError,
    PipelineUnknownError,
    StageError,
    TokenInvalidError,
    WorkerLostError,
)
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import coordinator_pb2 as pb
from testkit.faces import KINDS, connected, loop_in_thread, made

TOKEN = "open-sesame"
PORTS = ("a", "b")


class Exchange:
    """One Infer call at the server."""

    def __init__(self, server, context):
        self.server = server
        self.context = context
        self.credits = {port: Credit(WINDOW_ITEMS, WINDOW_BYTES) for port in PORTS}
        self.sizes = {port: deque() for port in PORTS}
        self.counts = dict.fromkeys(PORTS, 0)
        self.open_ports = set(PORTS)
        self.waiting = deque()
        self.changed = asyncio.Event()
        self.pipeline = ""

    async def send(self, payload=b"", **fields):
        header = pb.InferResponse(**fields).SerializeToString()
        await self.context.write(frame.join(header, [payload]))

    async def receive(self):
        message = await self.context.read()
        if message is grpc.aio.EOF:
            return None, None
        header, payload = frame.split(message)
        return pb.InferRequest.FromString(bytes(header)), payload

    async def accept(self, request_id):
        items_, size = (0, 0) if self.pipeline == "frugal" else (WINDOW_ITEMS, WINDOW_BYTES)
        credits = [pb.InputCredit(port=port, items=items_, size_bytes=size) for port in PORTS]
        await self.send(accepted=pb.InferAccepted(request_id=request_id, credits=credits))

    async def read(self):
        while True:
            request, payload = await self.receive()
            if request is None:
                return
            kind = request.WhichOneof("message")
            self.server.seen.append(kind)
            if kind == "item":
                self.waiting.append((request.item, bytes(payload)))
            elif kind == "output_credit":
                more = request.output_credit
                self.credits[more.port].grant(more.items, more.size_bytes)
            elif kind == "end_of_input":
                self.waiting.append((request.end_of_input.port or None, None))
            self.changed.set()

    async def next_waiting(self):
        await self.until(lambda: self.waiting)
        return self.waiting.popleft()

    async def until(self, condition):
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def echo(self):
        while self.open_ports:
            item, payload = await self.next_waiting()
            if payload is None:
                ended = self.open_ports & {item} if item else set(self.open_ports)
                self.open_ports -= ended
                for port in sorted(ended):
                    count = self.counts[port] + (self.pipeline == "short")
                    await self.send(end_of_output=pb.EndOfOutput(port=port, item_count=count))
                continue
            if item.HasField("tensor"):
                if self.pipeline != "greedy":
                    await self.until(lambda port=item.port: self.credits[port].is_open)
                self.credits[item.port].spend(item.tensor.size_bytes)
                self.sizes[item.port].append(item.tensor.size_bytes)
            await self.echo_chunk(item, payload)

    async def echo_chunk(self, item, payload):
        size = self.sizes[item.port][0]
        if self.pipeline == "damaged":
            payload = b"\xff" * len(payload)
        await self.send(payload, item=item)
        if item.chunk_offset_bytes + item.payload_size_bytes == size:
            self.sizes[item.port].popleft()
            self.counts[item.port] += 1
            credit = pb.InputCredit(port=item.port, items=1, size_bytes=size)
            await self.send(input_credit=credit)
        if self.pipeline == "late" and sum(self.counts.values()) == 2:
            raise WorkerLostError("worker cpu ended", retry_delay_ms=100, worker="cpu")

    async def gather(self):
        orders = {port: items.ChunkOrder(port) for port in PORTS}
        while self.open_ports:
            item, payload = await self.next_waiting()
            if payload is None:
                self.open_ports -= {item} if item else set(PORTS)
                continue
            descriptor, is_whole = orders[item.port].accept(item)
            if is_whole:
                credit = pb.InputCredit(port=item.port, items=1, size_bytes=descriptor.size_bytes)
                await self.send(input_credit=credit)
        text = f"{orders['a'].items} and {orders['b'].items}"
        for chunk in items.to_chunks("text", 0, text):
            await self.send(bytes(chunk.payload), item=chunk.item)
        await self.send(end_of_output=pb.EndOfOutput(port="text", item_count=1))

    async def run(self):
        request, _ = await self.receive()
        self.pipeline = request.open.pipeline
        self.server.openings.append(request.open)
        self.server.check(self.pipeline)
        if self.pipeline == "mute":
            await self.send(input_credit=pb.InputCredit(port="a", items=1, size_bytes=1))
        await self.accept(request.open.request_id or "chosen")
        reader = asyncio.create_task(self.read())
        try:
            if self.pipeline == "stuck":
                await asyncio.Event().wait()
            if self.pipeline == "frugal":
                await asyncio.to_thread(self.server.allow.wait)
                await self.send(input_credit=pb.InputCredit(port="a", items=1, size_bytes=1))
            await (self.gather() if self.pipeline == "gather" else self.echo())
        finally:
            reader.cancel()
        if self.pipeline != "silent":
            receipt = pb.Receipt(request_id=request.open.request_id or "chosen")
            await self.send(summary=pb.InferSummary(receipt=receipt))


class EchoServer(grpc.GenericRpcHandler):
    """The service; what the tests look at is set from its own thread and only read in theirs."""

    def __init__(self):
        self.address = ""
        self.token = TOKEN
        self.failures = deque()
        self.cancelled = threading.Event()
        self.allow = threading.Event()
        self.openings = []
        self.seen = []
        self.state = pb.CoordinatorState()
        self.changes = []

    def check(self, pipeline):
        if self.failures:
            raise self.failures.popleft()
        if pipeline == "ended":
            raise CancelledError("somebody ended the request", who="somebody")
        known = ("echo", "stuck", "late", "frugal", "damaged", "greedy", "silent", "mute", "short")
        if pipeline == "full":
            raise LaneFullError("lane full", retry_delay_ms=40, depth=8)
        if pipeline not in (*known, "gather"):
            raise PipelineUnknownError(
                f"no pipeline {pipeline!r}; there is echo", pipeline=pipeline
            )

    def service(self, details):
        name = details.method.rpartition("/")[2]
        handler = {
            "Run": grpc.unary_unary_rpc_method_handler(self.guarded(self.run)),
            "Infer": grpc.stream_stream_rpc_method_handler(self.guarded(self.infer)),
            "GetPlacement": grpc.unary_unary_rpc_method_handler(self.guarded(self.get_placement)),
            "WatchState": grpc.unary_stream_rpc_method_handler(self.guarded(self.watch_state)),
        }
        assert details.method == f"/stagewire.v1.CoordinatorService/{name}"
        return handler[name]

    def guarded(self, method):
        async def call(request, context):
            try:
                metadata = {key: value for key, value in context.invocation_metadata()}
                if metadata.get("authorization") != f"Bearer {TOKEN}":
                    raise TokenInvalidError("wrong token")
                return await method(request, context)
            except StageError as error:
                trailer = status.to_message(error).SerializeToString()
                await context.abort(
                    status.GRPC_CODES[error.code], "failed", ((status.TRAILER, trailer),)
                )
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

        return call

    async def run(self, message, context):
        header, payload = frame.split(message)
        request = pb.RunRequest.FromString(bytes(header))
        self.openings.append(request.open)
        self.seen.append("run")
        self.check(request.open.pipeline)
        if request.open.pipeline == "stuck":
            await asyncio.Event().wait()
        for item in request.items:
            assert items.Assembler(item.port).accept(item, payload) is not None
        answer = bytes(payload)
        if request.open.pipeline == "damaged":
            answer = answer[:-1]
        receipt = pb.Receipt(request_id=request.open.request_id or "chosen")
        response = pb.RunResponse(items=request.items, summary=pb.InferSummary(receipt=receipt))
        return frame.join(response.SerializeToString(), [answer])

    async def infer(self, requests, context):
        await Exchange(self, context).run()

    async def get_placement(self, message, context):
        return pb.GetPlacementResponse(state=self.state).SerializeToString()

    async def watch_state(self, message, context):
        for state in (self.state, *self.changes):
            await context.write(pb.WatchStateResponse(state=state).SerializeToString())
        await asyncio.Event().wait()


@pytest.fixture(scope="session")
def loop():
    with loop_in_thread() as loop:
        yield loop


@pytest.fixture
def server(loop):
    """A running EchoServer."""
    service = EchoServer()

    async def start():
        running = make_server([])
        running.add_generic_rpc_handlers((service,))
        service.address = f"127.0.0.1:{running.add_insecure_port('127.0.0.1:0')}"
        await running.start()
        return running

    running = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    yield service
    service.allow.set()
    asyncio.run_coroutine_threadsafe(running.stop(None), loop).result(60)


@pytest.fixture(params=KINDS)
def kind(request):
    """Which of the two clients a test is about; both have to do the same."""
    return request.param


@pytest.fixture
def make_client(kind, loop):
    """Makes a client, or an asynchronous one that looks like it, of an address and a token."""
    return functools.partial(made, kind, loop)


@pytest.fixture
def make_connected(kind, loop):
    """Makes a client of a state folder."""
    return functools.partial(connected, kind, loop)


@pytest.fixture
def client(make_client, server):
    with make_client(server.address, server.token) as client:
        yield client
