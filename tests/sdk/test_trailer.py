"""Failures in the trailer of real calls."""

import asyncio

import grpc
import pytest

from stagewire import status
from stagewire.channel import make_server, open_channel
from stagewire.errors import PlanInvalidError
from stagewire.limits import FAILURE_TEXT_BYTES

pytestmark = pytest.mark.integration

LARGEST = PlanInvalidError(
    "m" * 2 * FAILURE_TEXT_BYTES, **{f"fact_{number}": "v" * 5000 for number in range(40)}
)


class Aborting(grpc.GenericRpcHandler):
    def service(self, details):
        async def abort(request, context):
            trailer = status.to_message(LARGEST).SerializeToString()
            await context.abort(grpc.StatusCode.INTERNAL, "failed", ((status.TRAILER, trailer),))

        return grpc.unary_unary_rpc_method_handler(abort)


def fail_often(address):
    with open_channel(address) as channel:
        method = channel.unary_unary("/any/Method", None, None)
        for _ in range(50):
            with pytest.raises(grpc.RpcError) as failure:
                method(b"", timeout=60)
            yield failure.value.code(), status.from_rpc_error(failure.value)


async def test_the_largest_failure_fits_into_the_metadata_of_a_call():
    server = make_server([])
    server.add_generic_rpc_handlers((Aborting(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ends = await asyncio.to_thread(lambda: list(fail_often(f"127.0.0.1:{port}")))
    await server.stop(None)
    # Over its limit gRPC drops some calls by chance, with a code of its own.
    assert {code for code, _ in ends} == {grpc.StatusCode.INTERNAL}
    assert all(type(back) is PlanInvalidError and back.facts for _, back in ends)
