"""Workers that are no more than their messages to a gateway."""

import os

import grpc

from coordinator.gateway.service import Gateway
from stagewire import WIRE_VERSION, status
from stagewire.channel import open_aio_channel, open_stream
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb

SERVICE = "/stagewire.v1.GatewayService/"
TOKEN = "a token that was given over standard input"


class Caller:
    """A connection to a gateway that sends what it is told to."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.channels = []

    def call(self, method: str, token: str = ""):
        channel = open_aio_channel(self.gateway.address)
        self.channels.append(channel)
        return open_stream(channel, SERVICE + method, token=token)

    async def attach(self, message):
        """Begins Attach with one message; returns the call."""
        call = self.call("Attach")
        await call.write(message if isinstance(message, bytes) else message.SerializeToString())
        return call

    async def close(self) -> None:
        for channel in self.channels:
            await channel.close(None)


async def failure_of(call):
    """Reads a call to its end; returns the failure that it ends with."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
        await call
    except grpc.aio.AioRpcError as error:
        return status.from_rpc_error(error)
    raise AssertionError("the call ended well")


def hello(**changes):
    fields = {
        "wire_version": WIRE_VERSION,
        "token": TOKEN,
        "worker_id": "a",
        "process": capability_pb2.ProcessIdentity(
            process_id=os.getpid(), created_ticks=1, operating_system="linux"
        ),
        "environment": capability_pb2.EnvironmentAttestation(
            environment_key="key",
            distributions=[
                capability_pb2.DistributionAttestation(
                    name="stagewire", version="1", record_sha256="ab"
                )
            ],
        ),
    }
    return pb.AttachRequest(hello=pb.Hello(**fields | changes))
