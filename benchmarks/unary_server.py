"""A server of one empty unary call, in a process of its own: the floor for hops."""

import asyncio
from typing import Final

import grpc

SERVICE: Final = "stagewire.benchmark.Floor"
METHOD: Final = "Call"


async def _answer(_: bytes, __: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
    return b""


async def serve() -> None:
    """Serves until it is killed; prints its port first."""
    server = grpc.aio.server()
    method = grpc.unary_unary_rpc_method_handler(_answer)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve())
