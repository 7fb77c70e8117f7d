"""A worker whose environment was damaged since it was built comes up all the same."""

import asyncio

import numpy as np
import pytest

from stagewire.client import Client
from stagewire.errors import StageError
from testkit import plans
from testkit.plans import deed
from testkit.tiny_worker import Told, plan_of
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)


@pytest.fixture
def site(cache):
    """The folder of libraries in the environment."""
    return next(cache.glob("environments/worker-tiny/*/lib/*/site-packages"))


@pytest.mark.parametrize("name", ["worker_tiny/__main__.py", "psutil/__init__.py"])
async def test_a_damaged_environment_is_built_anew_and_its_worker_started_once_more(
    worker, site, tmp_path, name
):
    (site / name).write_text("raise ImportError('damaged')\n")
    told = Told(tmp_path, plan_of(worker))

    async with told.coordinator.running() as endpoint:
        with Client(endpoint.address, endpoint.token) as client:
            result = await asyncio.to_thread(client.run, "p", {"x": ITEM})
            assert len(result.outputs["y"]) == 1
            state = await asyncio.to_thread(client.placement)
    assert (state.workers[0].restarts, state.workers[0].last_reason) == (1, "WORKER_START_FAILED")
    assert len(told.builds) == 1


async def test_a_worker_that_fails_in_a_whole_environment_is_not_started_again(
    worker, site, tmp_path
):
    told = Told(tmp_path, plan_of(worker, deed("crash", on="load")))

    with pytest.raises(StageError) as caught:
        async with told.coordinator.running():
            pytest.fail("the plan came up")

    assert caught.value.reason == "WORKER_START_FAILED"
    assert told.builds == []


async def test_a_plan_comes_up_without_an_optional_worker_that_cannot_be_mended(
    worker, site, tmp_path
):
    plan = plans.chain(first=[deed("crash", on="load")])
    plan["workers"]["a"] = {"kind": "tiny", "environment": str(worker), "optional": True}
    told = Told(tmp_path, plan)

    async with told.coordinator.running() as endpoint:
        with Client(endpoint.address, endpoint.token) as client:
            result = await asyncio.to_thread(client.run, "p2", {"x": ITEM})
            assert len(result.outputs["y"]) == 1
        # It is tried again later, as often as any that was lost.
        await until(lambda: told.coordinator.runners["a"].restarts > 1)
