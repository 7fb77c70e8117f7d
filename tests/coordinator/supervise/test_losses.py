"""A worker that is killed, leaves, freezes or stops stepping: what its callers and others see."""

import asyncio
import os
import resource
import signal
import threading
import time

import numpy as np
import pytest

from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.policy import Breaker, RestartLimits
from stagewire.client import Phase
from stagewire.errors import StageError, StageNotResidentError
from stagewire.limits import LOG_BYTES
from stagewire.v1 import gateway_pb2, management_pb2
from testkit import calls, interpreters, plans
from testkit.leaks import living_members
from testkit.plans import deed
from testkit.running import quick, running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
PATIENT = {"hang_timeout": "600s", "deadline": "600s"}
TOLD_SECONDS = 5.0
"""Ten times what is promised, for a busy machine."""


def first_then_wait(client, begun):
    """Opens a request, says when its first output came, and stays in it until it fails."""
    with client.infer("p1") as call:
        call.send("x", ITEM)
        next(call)
        begun.set()
        for _ in call:
            pass


async def lose_in_request(it, worker, lose):
    """Loses a worker while it holds a request; returns the failure and the seconds until then."""
    begun = threading.Event()
    waiting = asyncio.create_task(it.failure(first_then_wait, it.client, begun))
    await until(begun.is_set)
    began = time.monotonic()
    lose()
    error = await waiting
    return error, time.monotonic() - began


async def test_a_killed_worker_fails_its_request_at_once_and_comes_back(tmp_path):
    async with running(tmp_path, plans.chain()) as it:
        before = it.incarnation("a"), it.incarnation("b"), it.pid("b")

        error, seconds = await lose_in_request(it, "a", lambda: it.signal("a", signal.SIGKILL))

        assert error.reason == "WORKER_LOST"
        assert seconds < TOLD_SECONDS
        await it.until_ready("one", after=before[0])
        assert (it.incarnation("b"), it.pid("b")) == before[1:]
        result = await it.run("p", {"x": ITEM})
        assert result.receipt.stages[0].incarnation > before[0]


async def test_requests_on_other_workers_do_not_notice(tmp_path):
    def stream_on(client, has_lost, counts):
        with client.infer("p2") as call:
            while not has_lost.is_set() or len(counts) < 50:
                call.send("x", ITEM)
                counts.append(next(call).value)
            call.end()
            return list(call)

    async with running(tmp_path, plans.chain()) as it:
        has_lost, counts = threading.Event(), []
        other = asyncio.create_task(it.ask(stream_on, it.client, has_lost, counts))
        await until(lambda: len(counts) > 5)

        error, _ = await lose_in_request(it, "a", lambda: it.signal("a", signal.SIGKILL))
        has_lost.set()

        assert error.reason == "WORKER_LOST"
        assert await other == []
        await it.until_ready("one")


async def test_every_request_of_a_chain_fails_with_the_worker_that_any_stage_needs(tmp_path):
    script = [deed("crash", after=1)]
    async with running(tmp_path, plans.chain(second=script)) as it:

        def run():
            with it.client.infer("p") as call:
                call.send("x", ITEM)
                first = next(call)
                call.send("x", ITEM)
                return first, list(call)

        error = await it.failure(run)

        assert error.reason == "WORKER_LOST"
        await it.until_ready("two", after=2)
        assert len((await it.run("p", {"x": ITEM})).outputs["y"]) == 1


@pytest.mark.parametrize("do", ["crash", "segfault", "exit"])
async def test_an_end_of_the_process_is_a_loss_whatever_its_exit_code_says(tmp_path, do):
    async with running(tmp_path, plans.single(deed(do, after=1))) as it:

        def run():
            with it.client.infer("p", {"x": [ITEM, ITEM]}) as call:
                return list(call)

        error = await it.failure(run)

        assert error.reason == "WORKER_LOST"
        await it.until_ready("one", after=1)
        assert len((await it.run("p", {"x": ITEM})).outputs["y"]) == 1
        state = await it.ask(it.client.placement)
        assert (state.workers[0].restarts, state.workers[0].last_reason) == (1, "WORKER_LOST")


async def test_an_idle_worker_that_ends_with_code_0_is_lost(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        # As when it is let go of, but nobody wanted that.
        it.attached("a").order(gateway_pb2.AttachResponse(shutdown=gateway_pb2.Shutdown()))

        await it.until_ready("one", after=1)

        state = await it.ask(it.client.placement)
        assert (state.workers[0].restarts, state.workers[0].last_reason) == (1, "WORKER_LOST")
        assert "exit code 0" in it.coordinator.runners["a"].last_error.message
        await it.run("p", {"x": ITEM})


async def test_a_frozen_worker_is_hung_killed_and_started_again(tmp_path):
    timing = quick(heartbeat_timeout=2.0)
    async with running(tmp_path, plans.chain(), timing=timing) as it:
        error, seconds = await lose_in_request(it, "a", lambda: it.signal("a", signal.SIGSTOP))

        assert error.reason == "WORKER_HUNG"
        assert seconds > 1
        await it.until_ready("one", after=2)
        await it.run("p", {"x": ITEM})


async def test_a_worker_whose_interpreter_is_blocked_is_hung(tmp_path):
    timing = quick(heartbeat_timeout=2.0)
    script = deed("hang_gil", after=1, seconds=600)
    async with running(tmp_path, plans.single(script), timing=timing) as it:
        error = await it.failure(_send_two, it.client)

        assert error.reason == "WORKER_HUNG"
        await it.until_ready("one", after=1)
        await it.run("p", {"x": ITEM})


async def test_an_executor_that_makes_no_step_is_hung_though_its_host_answers(tmp_path):
    script = deed("hang", after=1, seconds=600)
    plan = plans.single(script, limits={"hang_timeout": "1s", "deadline": "600s"})
    async with running(tmp_path, plan) as it:
        error = await it.failure(_send_two, it.client)

        assert error.reason == "WORKER_HUNG"
        assert "one" in error.message
        await it.until_ready("one", after=1)


async def test_a_stage_that_waits_for_input_is_not_hung(tmp_path):
    plan = plans.single(limits={"hang_timeout": "200ms", "deadline": "600s"})
    async with running(tmp_path, plan) as it:
        attached = it.attached("a")
        begun, may_end = threading.Event(), threading.Event()

        def wait_between_items():
            with it.client.infer("p") as call:
                call.send("x", ITEM)
                next(call)
                begun.set()
                assert may_end.wait(60)
                call.end()
                return list(call)

        waiting = asyncio.create_task(it.ask(wait_between_items))
        await until(begun.is_set)
        seen = attached.heartbeat_count
        # Ten heartbeats are a second: five times what it may take for one step.
        await until(lambda: attached.heartbeat_count > seen + 10)
        may_end.set()

        assert await waiting == []
        assert it.incarnation("a") == 1


async def test_a_crash_loop_ends_at_the_breaker_and_costs_little(tmp_path):
    code = interpreters.once_then(tmp_path, "raise SystemExit(0)\n")
    plan = interpreters.run_by(plans.chain(), "a", interpreters.interpreter(tmp_path, code))
    limits = RestartLimits()
    async with running(tmp_path, plan, restarts=limits, checks=False) as it:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        it.signal("a", signal.SIGKILL)
        await until(lambda: it.phase("a") is WorkerPhase.FAILED)

        runner, state = it.coordinator.runners["a"], await it.ask(it.client.placement)
        assert (runner.restarts, runner.incarnation) == (limits.intensity, 2 + limits.intensity)
        assert runner.breaker is Breaker.OPEN
        assert it.coordinator.lives["a"].hosting.process is None
        worker = state.workers[0]
        assert (worker.phase, worker.last_reason) == (Phase.FAILED, "WORKER_START_FAILED")
        assert worker.prospect.startswith("lost 6 times in 60 s; tried once more after 300 s; ")
        # Not queued: many more than its lane holds are all answered, and nothing is kept of them.
        errors = [await it.failure(it.client.run, "p1", {"x": ITEM}) for _ in range(20)]
        assert {error.reason for error in errors} == {"STAGE_FAILED"}
        assert not list(it.coordinator.engine.running)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        # Of the time until the next start; processor time, whatever else the machine does.
        assert used < 0.05 * limits.cooldown_seconds


async def test_a_worker_that_was_given_up_is_tried_once_after_its_cooldown(tmp_path):
    limits = RestartLimits(intensity=0, cooldown_seconds=0.3, calm_seconds=600)
    async with running(tmp_path, plans.chain(), restarts=limits) as it:
        it.signal("a", signal.SIGKILL)

        await it.until_ready("one", after=1)

        await it.run("p1", {"x": ITEM})
        assert it.coordinator.runners["a"].breaker is Breaker.HALF_OPEN
        state = await it.ask(it.client.placement)
        assert state.workers[0].prospect == "on trial: given up again if lost within 600 s"
        it.signal("a", signal.SIGKILL)
        await until(lambda: "lost again on trial" in it.coordinator.runners["a"].prospect)
        await it.until_ready("one", after=3)


async def test_a_worker_lost_too_often_is_given_up_until_a_person_acts(tmp_path):
    limits = RestartLimits(first_delay_seconds=0.01, intensity=2, period_seconds=600)
    async with running(tmp_path, plans.chain(), restarts=limits, checks=False) as it:
        for incarnation in (1, 2, 3):
            await until(lambda n=incarnation: it.coordinator.lives["a"].hosting.process is not None)
            it.signal("a", signal.SIGKILL)
            lost = it.incarnation("a")
            if incarnation < 3:
                await it.until_ready("one", after=lost)
        await until(lambda: it.phase("a") is WorkerPhase.FAILED)

        error = await it.failure(it.client.run, "p1", {"x": ITEM})
        assert error.reason == "STAGE_FAILED"
        state = await it.ask(it.client.placement)
        assert state.phase is Phase.FAILED
        # The other worker's own pipeline goes on.
        await it.run("p2", {"x": ITEM})

        await it.ask(
            calls.unary,
            it.endpoint.management_address,
            "/stagewire.v1.ManagementService/RestartWorker",
            management_pb2.RestartWorkerRequest(worker_id="a").SerializeToString(),
            token=it.endpoint.management_token,
        )
        await it.until_ready("one")
        await it.run("p", {"x": ITEM})


async def test_requests_meanwhile_are_told_to_wait(tmp_path):
    limits = RestartLimits(first_delay_seconds=600)
    async with running(tmp_path, plans.chain(), restarts=limits, checks=False) as it:
        it.signal("a", signal.SIGKILL)
        await until(lambda: it.phase("a") is WorkerPhase.RESTARTING)

        error = await it.failure(it.client.run, "p1", {"x": ITEM})

        assert error.reason == "STAGE_STARTING"
        assert error.retry_delay_ms


async def test_a_flood_of_stderr_blocks_nobody_and_fills_no_disk(tmp_path):
    # One line that does not end, of a gibibyte.
    plan = plans.chain(first=[deed("flood", size_bytes=1 << 30)], first_fields={"limits": PATIENT})
    async with running(tmp_path, plan) as it:
        attached, log = it.attached("a"), tmp_path / "state/logs/a.log"
        before = log.stat().st_size
        flooded = asyncio.create_task(it.run("p1", {"x": ITEM}, timeout=600))
        await until(lambda: log.stat().st_size > before)
        trips = others = 0
        while not flooded.done():
            # The flooding worker itself answers its orders, and the coordinator its clients.
            with pytest.raises(StageNotResidentError):
                await attached.prove("nowhere")
            trips += 1
            if trips % 10 == 0:
                others += len((await it.run("p2", {"x": ITEM})).outputs["y"])

        assert len((await flooded).outputs["y"]) == 1
        assert trips > 10
        assert others == trips // 10
        assert it.incarnation("a") == 1
        logs = list((tmp_path / "state/logs").glob("a.log*"))
        assert sum(each.stat().st_size for each in logs) <= 2 * LOG_BYTES


async def test_what_a_worker_started_ends_with_it(tmp_path):
    async with running(tmp_path, plans.single(deed("child", seconds=600))) as it:
        await it.run("p", {"x": ITEM})
        group = it.pid("a")
        members = living_members(group)
        assert len(members) == 2

        it.signal("a", signal.SIGKILL)

        await until(lambda: not living_members(group))
        await it.until_ready("one", after=1)


async def test_a_worker_that_cannot_be_started_again_is_said_without_a_path(tmp_path):
    # The environment is reached through a link that the test can take away.
    environment = tmp_path / "environment"
    environment.symlink_to(os.path.dirname(os.path.dirname(plans.sys.executable)))
    plan = plans.single()
    plan["workers"]["a"]["interpreter"]["linux"] = str(environment / "bin/python")
    limits = RestartLimits(first_delay_seconds=0.01, intensity=1, period_seconds=600)
    async with running(tmp_path, plan, restarts=limits, checks=False) as it:
        environment.unlink()
        it.signal("a", signal.SIGKILL)
        await until(lambda: it.phase("a") is WorkerPhase.FAILED)

        error = await it.failure(it.client.run, "p", {"x": ITEM})

        assert error.reason == "STAGE_FAILED"
        assert "WORKER_START_FAILED" in error.message


async def test_many_kills_under_load_lose_no_request_without_a_word(tmp_path):
    """Every request ends once: with its items, or with a reason that says to send it again."""
    limits = RestartLimits(first_delay_seconds=0.01, intensity=1000)

    def ask_again(client, number):
        value = np.full(4, number, np.float32)
        try:
            outputs = client.run("p", {"x": value}, timeout=60).outputs["y"]
        except StageError as error:
            return error.reason
        return "right" if len(outputs) == 1 and np.array_equal(outputs[0], value) else "wrong"

    async with running(tmp_path, plans.chain(), restarts=limits) as it:
        answers = []
        for number in range(8):
            batch = [it.ask(ask_again, it.client, number * 10 + k) for k in range(8)]
            gathered = asyncio.gather(*batch)
            process = it.coordinator.lives["ab"[number % 2]].hosting.process
            if process is not None:
                os.kill(process.pid, signal.SIGKILL)
            answers += await gathered
            await it.until_ready("one", "two")

        assert set(answers) <= {"right", "WORKER_LOST", "STAGE_STARTING", "LANE_FULL"}
        assert len(answers) == 64
        assert set(await asyncio.gather(*(it.ask(ask_again, it.client, n) for n in range(8)))) == {
            "right"
        }


def _send_two(client):
    with client.infer("p") as call:
        call.send("x", ITEM)
        next(call)
        call.send("x", ITEM)
        return list(call)
