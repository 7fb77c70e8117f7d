"""Cores and turns from the plan to the threads of a real worker and back to the status."""

import asyncio
import os
import threading

import numpy as np
import pytest

from testkit import plans
from testkit.plans import deed
from testkit.running import running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

LAST = max(os.sched_getaffinity(0))
PLAYED = {"y": plans.FLOATS | {"per_second": 4}}
ITEM = np.ones(4, np.float32)


def passed(client, *items):
    """Returns what comes out of pipeline p."""
    with client.infer("p", {"x": iter(items)}) as call:
        return [output.value.tolist() for output in call]


async def test_a_stage_keeps_to_the_cores_that_its_plan_names_and_says_so(tmp_path):
    plan = plans.chain(first_fields={"cores": [LAST]}, second_fields={"cores": "shared"})
    async with running(tmp_path, plan) as it:
        state = await it.ask(it.client.placement)

        one, two = (stage.thread_settings for stage in state.stages)
        assert one["cores"] == str(LAST)
        assert one["fake"] == "1", "what the executor says of its threads is there as well"
        assert two["cores"] != ""
        tasks = f"/proc/{it.pid('a')}/task"
        kept = [task for task in os.listdir(tasks) if os.sched_getaffinity(int(task)) == {LAST}]
        # The thread of its lane; the serving loop runs where there is room.
        assert kept
        if len(os.sched_getaffinity(0)) > 1:
            assert str(it.pid("a")) not in kept


async def test_two_requests_of_a_realtime_stage_both_come_through(tmp_path):
    plan = plans.single(
        deed("slow", seconds=0.02),
        outputs=PLAYED,
        pace="realtime",
        limits={"concurrency": 2},
    )
    async with running(tmp_path, plan) as it:
        results = await asyncio.gather(
            *(it.ask(passed, it.client, *[ITEM * number] * 20) for number in (1, 2))
        )

        assert results == [[[number] * 4] * 20 for number in (1, 2)]


async def test_a_request_that_leaves_while_it_waits_for_its_turn_leaves_nothing(tmp_path):
    plan = plans.single(
        deed("slow", seconds=0.5), outputs=PLAYED, pace="realtime", limits={"concurrency": 2}
    )
    async with running(tmp_path, plan) as it:
        first = asyncio.create_task(it.ask(passed, it.client, *[ITEM] * 4))
        left = threading.Event()

        def leave():
            with it.client.infer("p", {"x": iter([ITEM] * 4)}) as call:
                call.cancel()
            left.set()

        await it.ask(leave)
        assert left.is_set()
        assert len(await first) == 4
        assert len(await it.ask(passed, it.client, ITEM)) == 1
