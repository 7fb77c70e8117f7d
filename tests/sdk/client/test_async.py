"""What only the asynchronous client does: tasks that are cancelled, asynchronous inputs."""

import asyncio

import numpy as np
import pytest

from stagewire.client import AsyncClient
from stagewire.errors import (
    CancelledError,
    CoordinatorUnreachableError,
    DeadlineExceededError,
    WorkerLostError,
)
from stagewire.limits import MESSAGE_BYTES, WINDOW_ITEMS
from testkit.waiting import until

pytestmark = pytest.mark.integration

SECONDS = 120


@pytest.fixture
async def client(server):
    async with AsyncClient(server.address, server.token) as client:
        yield client


async def is_cancelled(server):
    return await until(server.cancelled.is_set, SECONDS)


async def cancel(task):
    """Cancels a task; it must end as cancelled."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def send_for_ever(call, value):
    while True:
        await call.send("a", value)


async def test_a_cancelled_task_cancels_its_request(client, server):
    task = asyncio.create_task(client.run("stuck", {"a": "x"}, timeout=SECONDS))
    await until(lambda: server.openings)
    await cancel(task)
    assert await is_cancelled(server)


async def test_a_cancelled_task_that_takes_outputs_cancels_its_request(client, server):
    async def take():
        async with client.infer("stuck", {"a": "x"}, timeout=SECONDS) as call:
            async for _ in call:
                pass

    task = asyncio.create_task(take())
    await until(lambda: "item" in server.seen)
    await cancel(task)
    assert await is_cancelled(server)


async def test_a_time_limit_of_asyncio_ends_a_request(client, server):
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(client.run("stuck", {"a": "x"}), 0.5)
    assert await is_cancelled(server)


async def test_a_send_that_waits_can_be_given_up_and_the_call_goes_on(client, server):
    async with client.infer("frugal", timeout=SECONDS) as call:
        assert await call.request_id == "chosen"
        task = asyncio.create_task(call.send("a", "given up"))
        await asyncio.sleep(0)
        await cancel(task)
        server.allow.set()
        await call.send("a", "sent")
        assert (await anext(call)).value == "sent"


async def test_a_send_that_is_broken_off_inside_its_item_ends_the_request(client, server):
    async with client.infer("stuck", timeout=SECONDS) as call:
        task = asyncio.create_task(call.send("a", np.zeros(16 * MESSAGE_BYTES, np.uint8)))
        await until(lambda: "item" in server.seen)
        await asyncio.sleep(0)
        # The server takes nothing in, so that the rest of it has to wait.
        if not task.done():
            await cancel(task)
            with pytest.raises(CancelledError, match="broken off"):
                await call.send("a", "x")


async def test_inputs_may_be_asynchronous_and_are_closed_at_the_end(client):
    closed = []

    async def texts():
        try:
            for number in range(3 * WINDOW_ITEMS):
                await asyncio.sleep(0)
                yield str(number)
        finally:
            closed.append(True)

    async with client.infer("echo", {"a": texts(), "b": ["x", "y"]}, timeout=SECONDS) as call:
        got = [(output.port, output.value) async for output in call]
    assert [value for port, value in got if port == "a"] == list(map(str, range(3 * WINDOW_ITEMS)))
    assert [value for port, value in got if port == "b"] == ["x", "y"]
    assert closed


async def test_an_asynchronous_input_that_never_ends_is_closed_when_the_call_is_left(client):
    closed = asyncio.Event()

    async def forever():
        try:
            while True:
                yield "x"
        finally:
            closed.set()

    async with client.infer("echo", {"a": forever()}, timeout=SECONDS) as call:
        assert (await anext(call)).value == "x"
    assert closed.is_set()


async def test_what_an_asynchronous_input_raises_ends_the_call(client, server):
    async def broken():
        yield "x"
        raise ZeroDivisionError("in the caller's own code")

    async with client.infer("echo", {"a": broken()}, timeout=SECONDS) as call:
        with pytest.raises(ZeroDivisionError):
            async for _ in call:
                pass
    assert await is_cancelled(server)


async def test_many_tasks_share_a_client(client):
    async def ask(number):
        if number % 2:
            return (await client.run("echo", {"a": str(number)}, timeout=SECONDS)).text("a")
        async with client.infer("echo", {"a": str(number)}, timeout=SECONDS) as call:
            await call.end()
            return "".join([output.value async for output in call])

    got = await asyncio.gather(*map(ask, range(40)))
    assert got == list(map(str, range(40)))


async def test_tasks_may_send_and_take_on_one_call(client):
    async with client.infer("echo", timeout=SECONDS) as call:

        async def send(port, count):
            for number in range(count):
                await call.send(port, str(number))
            await call.end(port)

        senders = [asyncio.create_task(send(port, 3 * WINDOW_ITEMS)) for port in ("a", "b")]
        got = [output.port async for output in call]
        await asyncio.gather(*senders)
    assert (got.count("a"), got.count("b")) == (3 * WINDOW_ITEMS, 3 * WINDOW_ITEMS)


async def test_a_request_that_the_coordinator_ends_as_cancelled_cancels_no_task(client):
    with pytest.raises(CancelledError) as failure:
        await client.run("ended", {"a": "x"}, timeout=SECONDS)
    assert failure.value.facts == {"who": "somebody"}
    async with client.infer("ended", {"a": "x"}, timeout=SECONDS) as call:
        with pytest.raises(CancelledError, match="somebody ended"):
            await anext(call)


async def test_the_reason_of_an_end_is_told_to_who_sends_at_that_moment(client):
    for size in range(100):
        async with client.infer("late", timeout=SECONDS) as call:
            with pytest.raises(WorkerLostError):
                await send_for_ever(call, "x" * (size * 50))


async def test_closing_the_client_ends_its_calls_but_no_task(client, server):
    tasks = [
        asyncio.create_task(client.run("stuck", {"a": "x"}, timeout=SECONDS)),
        asyncio.create_task(anext(client.watch())),
    ]
    async with client.infer("stuck", timeout=SECONDS) as call:
        assert await call.request_id == "chosen"
        await until(lambda: len(server.openings) == 2)
        await tasks[1]
        await client.close()
        with pytest.raises(CancelledError):
            await anext(call)
    with pytest.raises(CancelledError):
        await tasks[0]
    with pytest.raises(CancelledError, match="client was closed"):
        await client.run("echo", {"a": "x"})
    with pytest.raises(CancelledError, match="client was closed"):
        await client.placement()


async def test_a_task_that_watches_can_be_cancelled(client, server):
    async def watch():
        async for _ in client.watch():
            seen.set()

    seen = asyncio.Event()
    task = asyncio.create_task(watch())
    await seen.wait()
    await cancel(task)
    assert await is_cancelled(server)


async def test_a_loop_that_ends_leaves_no_call_behind(server):
    async def leave():
        client = AsyncClient(server.address, server.token)
        call = client.infer("stuck", {"a": "x"}, timeout=SECONDS)
        await call.__aenter__()
        await call.request_id

    await asyncio.to_thread(asyncio.run, leave())
    assert await is_cancelled(server)


async def test_failures_of_the_connection_are_typed():
    async with AsyncClient("127.0.0.1:1", "x") as client:
        with pytest.raises(CoordinatorUnreachableError):
            await client.run("echo", {"a": "x"}, timeout=SECONDS)
        async with client.infer("echo", {"a": "x"}, timeout=SECONDS) as call:
            with pytest.raises(CoordinatorUnreachableError):
                await anext(call)


async def test_the_deadline_of_a_call_counts_from_its_block(client):
    call = client.infer("stuck", timeout=0.3)
    async with call:
        with pytest.raises(DeadlineExceededError):
            await anext(call)
