"""Requests that may run twice, through real workers that die; and tasks that are cancelled."""

import asyncio
import signal

import numpy as np
import pytest

from stagewire.client import AsyncClient
from stagewire.errors import RequestDuplicateError, WorkerLostError
from testkit import plans
from testkit.faces import KINDS, beside
from testkit.plans import deed
from testkit.running import running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
INPUTS = {"x": ITEM}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def slow():
    """A stage that holds each request for a second, so that its worker can be killed meanwhile."""
    return plans.single(deed("slow", seconds=1.0))


async def test_a_request_whose_worker_died_runs_again_under_its_id(tmp_path, kind):
    async with running(tmp_path, slow()) as it, beside(kind, it.endpoint) as client:
        asking = asyncio.create_task(
            it.ask(client.run, "p", INPUTS, request_id="mine", idempotent=True, timeout=120)
        )
        await it.until_busy("a")
        it.signal("a", signal.SIGKILL)

        result = await asking

        assert np.array_equal(result.output("y"), ITEM)
        assert result.attempts > 1
        assert result.receipt.request_id == "mine"
        with pytest.raises(RequestDuplicateError):
            await it.ask(client.run, "p", INPUTS, request_id="mine", idempotent=True)


async def test_a_request_that_may_not_run_twice_fails_with_its_worker(tmp_path, kind):
    async with running(tmp_path, slow()) as it, beside(kind, it.endpoint) as client:
        asking = asyncio.create_task(it.ask(client.run, "p", INPUTS, request_id="mine"))
        await it.until_busy("a")
        incarnation = it.incarnation("a")
        it.signal("a", signal.SIGKILL)

        with pytest.raises(WorkerLostError):
            await asking

        await it.until_ready("one", after=incarnation)
        with pytest.raises(RequestDuplicateError):
            await it.ask(client.run, "p", INPUTS, request_id="mine")


async def test_a_cancelled_task_ends_its_executions_in_the_workers(tmp_path):
    async with (
        running(tmp_path, plans.chain()) as it,
        AsyncClient(it.endpoint.address, it.endpoint.token) as client,
    ):

        async def converse():
            async with client.infer("p") as call:
                await call.send("x", ITEM)
                async for _ in call:
                    came.set()

        came = asyncio.Event()
        task = asyncio.create_task(converse())
        await came.wait()
        [request] = it.coordinator.engine.running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await until(request.settled.done)
        assert request.error.reason == "CANCELLED"
        await it.until_quiet()


async def test_a_cancelled_run_ends_its_execution_in_the_worker(tmp_path):
    async with (
        running(tmp_path, plans.single(deed("slow", seconds=0.5))) as it,
        AsyncClient(it.endpoint.address, it.endpoint.token) as client,
    ):
        task = asyncio.create_task(client.run("p", INPUTS))
        await it.until_busy("a")
        [request] = it.coordinator.engine.running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await until(request.settled.done)
        assert request.error.reason == "CANCELLED"
