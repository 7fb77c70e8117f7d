"""A server of one empty unary call, in a process of its own: the floor for calls and hops."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

SERVICE: Final = "stagewire.benchmark.Floor"
METHOD: Final = "Call"


@dataclass(frozen=True, slots=True)
class UnaryServer:
    """A running server."""

    pid: int
    address: str

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["UnaryServer"]:
        """Starts one and ends it with the block."""
        command = [sys.executable, "-m", "benchmarks.arms.unary_server"]
        root = Path(__file__).resolve().parents[2]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
            try:
                if process.stdout is None:
                    raise RuntimeError("the server has no standard output")
                yield cls(process.pid, f"127.0.0.1:{int(process.stdout.readline())}")
            finally:
                process.kill()


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
