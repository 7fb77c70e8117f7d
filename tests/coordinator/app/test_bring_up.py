"""A plan comes up and answers, or is refused, and leaves nothing either way."""

import asyncio
import signal
import time

import numpy as np
import pytest

from coordinator.supervise.life import WorkerPhase
from stagewire.client import Client, Phase
from stagewire.endpoint import FILE_NAME
from stagewire.errors import StageError
from testkit import plans
from testkit.plans import deed
from testkit.running import make, quick, running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

MiB = 1 << 20
ITEM = np.ones(4, np.float32)


async def refused(tmp_path, plan, **settings):
    """Brings a plan up that cannot come up; returns why, with nothing left of it."""
    coordinator = make(tmp_path, plan, **settings)
    with pytest.raises(StageError) as caught:
        async with coordinator.running():
            pytest.fail("the plan came up")
    assert not (tmp_path / "state" / FILE_NAME).exists()
    lines = coordinator.design.ledger.snapshot().reservations
    assert {line.state.value for line in lines} == {"promised"}
    return caught.value


async def test_a_request_goes_through_two_workers_and_leaves_nothing(tmp_path):
    async with running(tmp_path, plans.chain()) as it:
        sent = np.arange(10, dtype=np.float32)

        result = await it.run("p", {"x": sent})

        assert np.array_equal(result.outputs["y"][0], sent)
        stages = [(run.stage_id, run.worker_id) for run in result.receipt.stages]
        assert stages == [("one", "a"), ("two", "b")]
        crossed = {(hop.source, hop.target): hop.size_bytes for hop in result.receipt.hops}
        assert crossed == {("x", "one.x"): 40, ("one.y", "two.x"): 40, ("two.y", "y"): 40}


async def test_every_stage_is_proved_and_every_worker_measured_beside_its_budget(tmp_path):
    plan = plans.chain(first=[deed("leak", on="load", size_bytes=32 * MiB)])
    async with running(tmp_path, plan) as it:
        attached = it.attached("a")
        await until(lambda: attached.measurement is not None)
        # One heartbeat after the load has the load's memory in it.
        seen = attached.heartbeat_count
        await until(lambda: attached.heartbeat_count > seen + 1)

        state = await it.ask(it.client.placement)

        assert state.phase is Phase.READY
        assert [(item.verdict.name, item.grade.name) for item in state.stages] == [
            ("FULL", "B")
        ] * 2
        assert 30 * MiB < state.stages[0].measured_bytes < 64 * MiB
        assert state.stages[1].measured_bytes < 8 * MiB
        assert all(worker.reserved_bytes == 91 * MiB for worker in state.workers)
        assert state.workers[0].measured_bytes > state.stages[0].measured_bytes
        assert state.workers[0].peak_bytes >= state.workers[0].measured_bytes
        measured = {
            item.owner: item.measured_bytes
            for item in state.ledger.reservations
            if item.lifetime == "resident"
        }
        assert measured["worker:a"] > 30 * MiB
        failed = it.coordinator.design.ledger.failed_budgets()
        assert "stage:one" in {item.owner for item in failed}


async def test_a_load_that_the_executor_refuses_is_the_reason(tmp_path):
    error = await refused(tmp_path, plans.chain(second=[deed("refuse", on="load")]))

    assert error.reason == "LOAD_FAILED"
    assert "two" in error.message


async def test_a_load_that_fails_inside_a_library_says_nothing_of_the_library(tmp_path):
    error = await refused(tmp_path, plans.chain(first=[deed("raise", on="load")]))

    assert error.reason == "LOAD_FAILED"
    assert "error id" in error.message
    assert "secret" not in error.message


async def test_options_that_the_executor_does_not_know_are_the_reason(tmp_path):
    error = await refused(tmp_path, plans.single({"do": "juggle"}))

    assert error.reason == "FIELD_INVALID"


@pytest.mark.parametrize(("do", "how"), [("crash", "SIGKILL"), ("exit", "exit code 0")])
async def test_a_worker_that_ends_while_loading_is_the_reason(tmp_path, do, how):
    error = await refused(tmp_path, plans.single(deed(do, on="load")))

    assert error.reason == "WORKER_START_FAILED"
    assert how in error.message


async def test_an_interpreter_that_is_no_worker_is_the_reason(tmp_path):
    plan = plans.single()
    plan["workers"]["a"]["interpreter"]["linux"] = "/bin/false"

    error = await refused(tmp_path, plan)

    assert error.reason == "ENVIRONMENT_BROKEN"


async def test_the_first_failure_does_not_wait_for_slower_workers(tmp_path):
    plan = plans.chain(
        first=[deed("slow", on="load", seconds=600)], second=[deed("refuse", on="load")]
    )
    began = time.monotonic()

    error = await refused(tmp_path, plan, timing=quick(leave=1.0))

    assert error.reason == "LOAD_FAILED"
    assert time.monotonic() - began < 30


async def test_a_plan_comes_up_without_an_optional_worker(tmp_path):
    plan = plans.chain(second=[deed("refuse", on="load")])
    plan["workers"]["b"]["optional"] = True
    async with running(tmp_path, plan, checks=False) as it:
        await until(lambda: it.phase("b") is not WorkerPhase.STARTING)

        await it.run("p1", {"x": ITEM})
        error = await it.failure(it.client.run, "p", {"x": ITEM})

        assert error.reason in ("STAGE_FAILED", "STAGE_STARTING")


@pytest.mark.parametrize("moment", ["while a worker starts", "while a stage loads"])
async def test_a_bring_up_that_is_cancelled_leaves_nothing(tmp_path, moment):
    plan = plans.chain(first=[deed("slow", on="load", seconds=600)])
    coordinator = make(tmp_path, plan, timing=quick(leave=0.5))

    async def bring_up():
        async with coordinator.running():
            pytest.fail("the plan came up")

    task = asyncio.create_task(bring_up())
    life = await until(lambda: coordinator.lives.get("a"))
    await until(lambda: life.hosting.process)
    if moment == "while a stage loads":
        await until(lambda: life.hosting.phases.get("one") == "loading")
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (tmp_path / "state" / FILE_NAME).exists()


async def test_a_stop_waits_for_requests_and_admits_no_new_one(tmp_path):
    async with running(tmp_path, plans.single(deed("slow", seconds=1.0))) as it:
        slow = asyncio.create_task(it.run("p", {"x": ITEM}))
        await it.until_busy("a")
        assert it.coordinator.request_stop() == 1
        draining = asyncio.create_task(it.coordinator.engine.drain(60))
        # A task begins at the next turn of the loop.
        error = None
        while error is None or error.reason != "SHUTTING_DOWN":
            error = await it.failure(it.client.run, "nowhere", {"x": ITEM})

        assert len((await slow).outputs["y"]) == 1
        assert await draining == 0


async def test_a_stop_that_cannot_wait_longer_ends_requests_with_a_reason(tmp_path):
    plan = plans.single(deed("slow", seconds=600), limits={"deadline": "900s"})
    coordinator = make(tmp_path, plan, timing=quick(drain=0.2, leave=0.5))

    async with coordinator.running() as endpoint:
        client = Client(endpoint.address, endpoint.token)
        request = asyncio.create_task(asyncio.to_thread(client.run, "p", {"x": ITEM}))
        await until(lambda: list(coordinator.engine.running))

    with pytest.raises(StageError) as caught:
        await request
    client.close()
    assert caught.value.reason == "SHUTTING_DOWN"
    assert coordinator.cut_short == 1


async def test_a_second_coordinator_on_the_same_state_is_refused(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        endpoint = (tmp_path / "state" / FILE_NAME).read_bytes()
        second = make(tmp_path, plans.single())

        with pytest.raises(StageError) as caught:
            async with second.running():
                pytest.fail("the second came up")

        assert (caught.value.reason, caught.value.exit_code) == ("STATE_HELD", 75)
        assert (tmp_path / "state" / FILE_NAME).read_bytes() == endpoint
        await it.run("p", {"x": ITEM})


async def test_a_port_that_is_taken_is_refused(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    async with running(tmp_path / "first", plans.single()) as it:
        error = await refused(tmp_path / "second", plans.single(), address=it.endpoint.address)

    assert error.exit_code == 75


async def test_an_address_that_others_reach_is_refused(tmp_path):
    error = await refused(tmp_path, plans.single(), address="0.0.0.0:0")

    assert (error.reason, error.exit_code) == ("BIND_UNSAFE", 78)


# --- memory ---


def total_bytes(tmp_path, plan):
    """What a plan needs: the reserved bytes of the leaf when there is room for everything."""
    snapshot = make(tmp_path, plan, quota_bytes=1 << 40).design.ledger.snapshot()
    return snapshot.constraints[-1].reserved_bytes


def test_a_plan_that_does_not_fit_is_refused_with_the_arithmetic(tmp_path):
    plan = plans.single(memory={"resident": "900MiB", "load_peak": "1000MiB"})

    with pytest.raises(StageError) as caught:
        make(tmp_path, plan, quota_bytes=900 * MiB)

    error = caught.value
    assert (error.reason, error.exit_code) == ("CONSTRAINT_EXCEEDED", 2)
    for part in ("900.0 MiB", "stage:one", "worker:a", "--ram"):
        assert part in error.message


def test_a_plan_fits_to_the_byte(tmp_path):
    plan = plans.single(memory={"resident": "10MiB", "load_peak": "30MiB"})
    needed = total_bytes(tmp_path, plan)

    make(tmp_path, plan, quota_bytes=needed)
    with pytest.raises(StageError):
        make(tmp_path, plan, quota_bytes=needed - 1)


@pytest.mark.parametrize("pool", ["tight", "roomy"])
async def test_loads_take_turns_only_in_a_pool_that_is_tight(tmp_path, pool):
    memory = {"memory": {"resident": "1MiB", "load_peak": "200MiB"}}
    slow = [deed("slow", on="load", seconds=0.7)]
    plan = plans.chain(slow, slow, memory, memory)
    quota = total_bytes(tmp_path, plan) + (0 if pool == "tight" else 200 * MiB)
    coordinator = make(tmp_path, plan, quota_bytes=quota)
    most = 0

    async def count_loads():
        nonlocal most
        async for _ in coordinator.states():
            most = max(most, len(coordinator.design.ledger.snapshot().loading))

    counting = asyncio.create_task(count_loads())
    async with coordinator.running():
        pass
    await counting

    assert most == (1 if pool == "tight" else 2)


async def test_the_memory_of_a_lost_worker_is_charged_until_its_process_is_gone(tmp_path):
    async with running(tmp_path, plans.single(), timing=quick(heartbeat_timeout=1.0)) as it:
        seen = []

        async def watch():
            async for _ in it.coordinator.states():
                lines = it.coordinator.design.ledger.snapshot().reservations
                state = {line.state.value for line in lines if line.reservation.owner == "worker:a"}
                seen.append((*state, it.coordinator.lives["a"].hosting.process is not None))

        watching = asyncio.create_task(watch())
        it.signal("a", signal.SIGSTOP)
        await it.until_ready("one", after=1)
        watching.cancel()

        states = [state for state, _ in seen]
        assert "quarantined" in states
        assert all(has_process for state, has_process in seen if state == "quarantined")


async def test_a_port_that_does_not_exist_is_refused(tmp_path):
    error = await refused(tmp_path, plans.single(), address="127.0.0.1:99999")

    assert error.reason == "FIELD_INVALID"
