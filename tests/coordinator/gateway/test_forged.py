"""A program of the same machine that plays the worker: refused, said, and nobody else notices."""

from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from stagewire.v1 import capability_pb2
from testkit import plans
from testkit.attaching import Caller, failure_of, hello
from testkit.running import running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)


def address_of_gateway(pid):
    """Finds out where a worker is connected to, as any program of the same user can."""
    [address] = {item.raddr for item in psutil.Process(pid).net_connections("tcp") if item.raddr}
    return f"{address.ip.removeprefix('::ffff:')}:{address.port}"


async def test_whoever_plays_a_living_worker_is_refused_and_the_worker_goes_on(tmp_path):
    async with running(tmp_path, plans.chain()) as it:
        before = it.incarnation("a"), it.pid("a")
        identity = capability_pb2.ProcessIdentity(process_id=it.pid("a"))
        caller = Caller(SimpleNamespace(address=address_of_gateway(it.pid("a"))))
        for token in ("", "guess", it.endpoint.token):
            call = await caller.attach(hello(token=token, worker_id="a", process=identity))
            assert (await failure_of(call)).reason == "TOKEN_INVALID"
            assert (await failure_of(caller.call("Exchange", token))).reason == "TOKEN_INVALID"
        assert (await failure_of(await caller.attach(b"\xff"))).reason == "FIELD_INVALID"
        await caller.close()

        await it.run("p", {"x": ITEM})

        assert (it.incarnation("a"), it.pid("a")) == before
        log = (tmp_path / "state/logs/coordinator.log").read_text()
        assert "Attach refused reason=TOKEN_INVALID count=3" in log
        assert "Exchange refused reason=TOKEN_INVALID count=3" in log
        assert it.endpoint.token not in log
