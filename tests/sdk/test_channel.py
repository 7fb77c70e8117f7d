"""Limits that gRPC enforces for us, tried over a real connection."""

import asyncio
import contextlib

import grpc
import pytest

from stagewire import status
from stagewire.channel import make_server, open_aio_channel
from stagewire.errors import MessageTooBigError
from stagewire.limits import CONCURRENT_CALLS, METADATA_BYTES

pytestmark = pytest.mark.integration

METHOD = "/any/Method"
SECONDS = 60


class Held(grpc.GenericRpcHandler):
    """Answers when it is told to; counts the calls that have begun."""

    def __init__(self):
        self.begun = 0
        self.changed = asyncio.Condition()
        self.release = asyncio.Event()

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def answer(self, request, context):
        async with self.changed:
            self.begun += 1
            self.changed.notify_all()
        if request == b"wait":
            await self.release.wait()
        return request

    async def have_begun(self, count):
        async with asyncio.timeout(SECONDS), self.changed:
            await self.changed.wait_for(lambda: self.begun >= count)


@contextlib.asynccontextmanager
async def connection():
    held = Held()
    server = make_server([])
    server.add_generic_rpc_handlers((held,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_aio_channel(f"127.0.0.1:{port}") as channel:
        yield held, channel.unary_unary(METHOD)
    await server.stop(None)


async def test_metadata_over_its_limit_end_the_call():
    async with connection() as (held, call):
        # HTTP/2 counts 32 bytes for each entry, and the entries of gRPC itself.
        within = (("note", "x" * (METADATA_BYTES - 1024)),)
        assert await call(b"a", metadata=within, timeout=SECONDS) == b"a"
        for size in (2 * METADATA_BYTES, 1 << 20):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"a", metadata=(("note", "x" * size),), timeout=SECONDS)
            failure = status.from_end(caught.value.code(), caught.value.trailing_metadata())
            assert isinstance(failure, MessageTooBigError)
        # The connection goes on.
        assert await call(b"b", timeout=SECONDS) == b"b"
        assert held.begun == 2


async def test_no_more_calls_run_at_once_than_their_limit():
    async with connection() as (held, call):
        calls = [
            asyncio.ensure_future(call(b"wait", timeout=SECONDS))
            for _ in range(2 * CONCURRENT_CALLS)
        ]
        await held.have_begun(CONCURRENT_CALLS)
        # Anything else that could begin has begun by the time that a call on another connection
        # has been answered.
        async with connection() as (_, other):
            assert await other(b"a", timeout=SECONDS) == b"a"
        assert held.begun == CONCURRENT_CALLS
        held.release.set()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        # The others wait, or gRPC refuses them as it pleases: both may be tried again.
        refused = [end for end in ends if isinstance(end, grpc.aio.AioRpcError)]
        assert {end.code() for end in refused} <= {grpc.StatusCode.UNAVAILABLE}
        assert len(ends) - len(refused) == ends.count(b"wait") >= CONCURRENT_CALLS
