"""The two connections of a worker to its coordinator: control on Attach, items on Exchange."""

import asyncio

from stagewire.channel import open_aio_channel, open_stream
from stagewire.envelope import open_envelope
from stagewire.v1 import gateway_pb2 as pb
from stagewire.worker.outbox import Outbox

_SERVICE = "/stagewire.v1.GatewayService/"


class ControlLink:
    """The Attach call: orders come in, answers go out in the order in which they were put."""

    def __init__(self, address: str) -> None:
        self._channel = open_aio_channel(address)
        self._loop = asyncio.get_running_loop()
        self._outgoing: asyncio.Queue[pb.AttachRequest] = asyncio.Queue()
        self._call = open_stream(
            self._channel,
            _SERVICE + "Attach",
            pb.AttachRequest.SerializeToString,
            pb.AttachResponse.FromString,
        )

    async def greet(self, hello: pb.Hello) -> pb.Welcome:
        """Registers this process.

        Raises:
            grpc.aio.AioRpcError: the coordinator refused; the trailer says why.
        """
        await self._call.write(pb.AttachRequest(hello=hello))
        message = await self._call.read()
        if not isinstance(message, pb.AttachResponse):
            # The call ended without a message: its status says why.
            await self._call
            raise ConnectionError("the coordinator closed Attach without a word")
        return message.welcome

    def put(self, message: pb.AttachRequest) -> None:
        """Queues one message; on the loop."""
        self._outgoing.put_nowait(message)

    def put_threadsafe(self, message: pb.AttachRequest) -> None:
        """Queues one message; from any thread."""
        self._loop.call_soon_threadsafe(self._outgoing.put_nowait, message)

    async def send_all(self) -> None:
        """Writes what is queued until the call ends."""
        while True:
            await self._call.write(await self._outgoing.get())

    async def next_order(self) -> pb.AttachResponse | None:
        """Waits for the next order; None when the coordinator has ended the call."""
        message = await self._call.read()
        return message if isinstance(message, pb.AttachResponse) else None

    async def close(self) -> None:
        """Writes what is still queued, then ends the call and its connection."""
        while not self._outgoing.empty():
            await self._call.write(self._outgoing.get_nowait())
        await self._call.done_writing()
        await self._channel.close(grace=1.0)


class ItemLink:
    """The Exchange call, on a connection of its own so that bulk never delays control."""

    def __init__(self, address: str, token: str, outbox: Outbox) -> None:
        self._channel = open_aio_channel(address)
        self._outbox = outbox
        self._call = open_stream(self._channel, _SERVICE + "Exchange", token=token)

    async def send_all(self) -> None:
        """Writes the outbox until the call ends."""
        while True:
            await self._call.write(await self._outbox.next_envelope())

    async def next_envelope(self) -> tuple[pb.ExchangeResponse, memoryview] | None:
        """Waits for the next envelope; None when the coordinator has ended the call."""
        message = await self._call.read()
        if not isinstance(message, bytes):
            return None
        return open_envelope(message, pb.ExchangeResponse())
