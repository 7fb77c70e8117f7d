"""Items under way: overlap, credit, cancellation and deadlines, through real workers."""

import asyncio
import itertools
import sys
import threading

import numpy as np
import psutil
import pytest

from coordinator.pipeline.topology import Endpoint
from stagewire.limits import WINDOW_ITEMS
from testkit import plans
from testkit.plans import FLOATS, deed, pipeline, stage
from testkit.running import running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
MiB = 1 << 20


def only_request(it):
    [request] = it.coordinator.engine.running
    return request


async def test_the_first_output_arrives_while_inputs_are_still_sent(tmp_path):
    async with running(tmp_path, plans.chain()) as it:

        def converse():
            with it.client.infer("p") as call:
                for number in range(20):
                    call.send("x", np.full(2, number, np.float32))
                    assert next(call).value[0] == number
                call.end()
                assert list(call) == []
                return call.receipt

        receipt = await it.ask(converse)

        assert receipt.first_output_seconds < receipt.total_seconds
        assert [hop.items for hop in receipt.hops] == [20, 20, 20]


async def test_a_later_stage_works_while_an_earlier_one_still_does(tmp_path):
    slow = [deed("slow", seconds=0.1)]
    async with running(tmp_path, plans.chain(first=slow)) as it:

        def converse():
            with it.client.infer("p", {"x": [ITEM] * 5}) as call:
                next(call)
                [request] = it.coordinator.engine.running
                first = request.runs["one"]
                was_running = not first.has_ended
                rest = len(list(call))
                return was_running, rest

        was_running, rest = await it.ask(converse)

        assert was_running
        assert rest == 4


async def test_two_streams_are_joined_and_one_is_shared(tmp_path):
    plan = plans.plan(
        {
            "source": stage("a"),
            "left": stage("b"),
            "right": stage("a"),
            "join": stage("b", inputs={"l": FLOATS, "r": FLOATS}),
        },
        {
            "p": pipeline(
                {"x": "source.x"},
                {"y": "join.y", "seen": "source.y"},
                ("source.y", "left.x"),
                ("source.y", "right.x"),
                ("left.y", "join.l"),
                ("right.y", "join.r"),
            )
        },
    )
    sent = [np.full(3, number, np.float32) for number in range(10)]
    async with running(tmp_path, plan) as it:

        def converse():
            with it.client.infer("p", {"x": sent}) as call:
                return [(output.port, output.value[0]) for output in call]

        outputs = await it.ask(converse)

        assert sorted(value for port, value in outputs if port == "y") == sorted([*range(10)] * 2)
        assert [value for port, value in outputs if port == "seen"] == [*range(10)]


async def test_the_slowest_of_two_consumers_holds_the_source_back(tmp_path):
    count = 4 * WINDOW_ITEMS
    plan = plans.plan(
        {
            "source": stage("a"),
            "quick": stage("b"),
            "slow": stage("b", deed("slow", seconds=0.005), outputs={"y": plans.ONE}),
        },
        {
            "p": pipeline(
                {"x": "source.x"},
                {"quick": "quick.y", "slow": "slow.y"},
                ("source.y", "quick.x"),
                ("source.y", "slow.x"),
            )
        },
    )
    async with running(tmp_path, plan) as it:

        def converse():
            with it.client.infer("p", {"x": [ITEM] * count}) as call:
                return [output.port for output in call]

        asked = asyncio.create_task(it.ask(converse))
        request = (await until(lambda: list(it.coordinator.engine.running)))[0]
        flow = request.flows[Endpoint("source", "y")]
        quick, slow = flow.hops
        most = 0

        def is_through():
            nonlocal most
            most = max(most, quick.items - slow.done_items)
            return asked.done()

        await until(is_through, 60)
        ports = await asked

        assert ports.count("quick") == count
        assert ports.count("slow") == 1
        assert WINDOW_ITEMS // 2 < most <= WINDOW_ITEMS


async def test_a_client_that_takes_nothing_holds_its_own_sender_back(tmp_path):
    """Whatever is offered, only the windows of the edges fill; 1 GiB is never in memory."""
    item = np.ones(MiB // 4, np.float32)
    sent, has_stalled = [], threading.Event()

    def endless():
        for number in itertools.count():
            sent.append(number)
            yield item

    async with running(tmp_path, plans.chain()) as it:

        def offer():
            with it.client.infer("p", {"x": endless()}):
                assert has_stalled.wait(120)

        before = psutil.Process().memory_info().rss
        offering = asyncio.create_task(it.ask(offer))
        attached = it.attached("a")
        seen = (-1, 0)

        def is_stalled():
            nonlocal seen
            if seen[0] != len(sent):
                seen = len(sent), attached.heartbeat_count
            # Nothing was sent during ten heartbeats, and something was before.
            return seen[0] > 0 and attached.heartbeat_count > seen[1] + 10

        await until(is_stalled, 120)
        grown = psutil.Process().memory_info().rss - before
        has_stalled.set()
        await offering

        # The client is in this process too: three edges here, one window of it in the client.
        assert len(sent) <= 64
        assert grown < 160 * MiB
        await it.until_quiet()


async def test_leaving_a_call_cancels_the_executions_and_frees_what_they_held(tmp_path):
    async with running(tmp_path, plans.chain()) as it:

        def leave():
            with it.client.infer("p") as call:
                for _ in range(10):
                    call.send("x", ITEM)
                next(call)

        await it.ask(leave)

        await it.until_quiet()
        for worker in ("a", "b"):
            attached = it.attached(worker)
            seen = attached.heartbeat_count
            await until(lambda a=attached, s=seen: a.heartbeat_count > s + 1)
            assert not any(lane.is_busy for lane in attached.heartbeat.lanes)
        await it.run("p", {"x": ITEM})


async def test_a_cancel_reaches_an_executor_between_two_steps(tmp_path):
    """The executor has forty items before it; it must not work through them."""
    async with running(tmp_path, plans.single(deed("slow", seconds=0.05))) as it:

        def leave():
            with it.client.infer("p") as call:
                for _ in range(40):
                    call.send("x", ITEM)
                next(call)

        await it.ask(leave)
        await it.until_quiet()

        attached = it.attached("a")
        seen = attached.heartbeat_count
        await until(lambda: attached.heartbeat_count > seen + 1)
        [lane] = attached.heartbeat.lanes
        assert not lane.is_busy
        # Forty items would be more than eighty steps: each is received and sent.
        assert lane.progress < 60


async def test_a_request_that_is_cancelled_in_the_queue_of_a_lane_leaves_it_at_once(tmp_path):
    plan = plans.single(limits={"concurrency": 1, "queue": 1})
    async with running(tmp_path, plan) as it:

        def queue_and_leave():
            with it.client.infer("p") as first:
                first.send("x", ITEM)
                next(first)
                for _ in range(5):
                    with it.client.infer("p") as second:
                        second.send("x", ITEM)
                        assert second.request_id
                    # Its place is free again although the first one still holds the lane.
                    has_left.wait_for_one()
                first.end()
                return list(first)

        class Left:
            def wait_for_one(self):
                asyncio.run_coroutine_threadsafe(
                    until(lambda: len(list(it.coordinator.engine.running)) == 1), loop
                ).result()

        loop, has_left = asyncio.get_running_loop(), Left()

        assert await it.ask(queue_and_leave) == []


async def test_requests_that_are_left_as_soon_as_they_begin_hold_nothing(tmp_path):
    async with running(tmp_path, plans.chain()) as it:

        def leave(number):
            with it.client.infer("p", {"x": [ITEM] * (number % 3)}):
                pass

        for start in range(0, 60, 6):
            await asyncio.gather(*(it.ask(leave, start + k) for k in range(6)))

        await it.until_quiet()
        await it.run("p", {"x": ITEM})


async def test_a_client_that_is_killed_in_a_call_is_cleaned_up_after(tmp_path):
    code = """
import sys
import numpy as np
from stagewire.client import Client

with Client(sys.argv[1], sys.stdin.readline().strip()).infer("p") as call:
    call.send("x", np.ones(4, np.float32))
    next(call)
    print("begun", flush=True)
    list(call)
"""
    async with running(tmp_path, plans.chain()) as it:
        pipe = asyncio.subprocess.PIPE
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, it.endpoint.address, stdin=pipe, stdout=pipe
        )
        client.stdin.write(f"{it.endpoint.token}\n".encode())
        assert await client.stdout.readline() == b"begun\n"
        request = only_request(it)

        client.kill()
        await client.communicate()

        await until(request.settled.done)
        assert request.error.reason == "CANCELLED"
        await it.run("p", {"x": ITEM})


# --- deadlines ---


async def test_a_request_ends_at_its_deadline_and_a_later_stage_never_starts(tmp_path):
    once = {"outputs": {"y": {**FLOATS, "stream": False}}}
    plan = plans.chain(first=[deed("slow", seconds=1.5)], first_fields=once)
    async with running(tmp_path, plan) as it:
        asked = asyncio.create_task(it.failure(it.client.run, "p", {"x": ITEM}, timeout=0.5))
        request = (await until(lambda: list(it.coordinator.engine.running)))[0]
        error = await asked

        assert error.reason == "DEADLINE_EXCEEDED"
        await until(request.settled.done)
        assert request.runs["one"].is_started
        assert not request.runs["two"].is_started


async def test_a_stage_ends_at_its_own_deadline_even_when_it_makes_no_step(tmp_path):
    plan = plans.single(
        deed("slow", seconds=2.5), limits={"deadline": "300ms", "hang_timeout": "60s"}
    )
    async with running(tmp_path, plan) as it:
        asked = asyncio.create_task(it.failure(it.client.run, "p", {"x": ITEM}))
        request = (await until(lambda: list(it.coordinator.engine.running)))[0]

        error = await asked

        assert error.reason == "DEADLINE_EXCEEDED"
        assert "one" in error.message
        # The caller was told before the executor came back.
        assert not request.settled.done()
        await until(request.settled.done)


async def test_a_deadline_ends_a_wait_for_input(tmp_path):
    async with running(tmp_path, plans.chain()) as it:

        def wait():
            with it.client.infer("p", timeout=0.5) as call:
                call.send("x", ITEM)
                return list(call)

        error = await it.failure(wait)

        assert error.reason == "DEADLINE_EXCEEDED"


async def test_a_deadline_ends_a_wait_in_the_queue_of_a_lane(tmp_path):
    async with running(tmp_path, plans.single()) as it:

        def wait():
            with it.client.infer("p") as first:
                first.send("x", ITEM)
                next(first)
                try:
                    return it.client.run("p", {"x": ITEM}, timeout=0.5)
                finally:
                    first.end()
                    list(first)

        error = await it.failure(wait)

        assert error.reason == "DEADLINE_EXCEEDED"


async def test_a_stage_that_never_makes_it_in_time_is_not_started_any_more(tmp_path):
    plan = plans.single(deed("slow", seconds=0.2))
    async with running(tmp_path, plan) as it:
        for _ in range(5):
            await it.run("p", {"x": ITEM})

        error = await it.failure(it.client.run, "p", {"x": ITEM}, timeout=0.1)

        assert error.reason == "DEADLINE_EXCEEDED"
        assert "was not started" in error.message
