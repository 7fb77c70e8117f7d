"""A machine that sleeps: everything stands still, for longer than any limit, and goes on."""

import signal

import numpy as np
import psutil
import pytest

from stagewire.errors import StageError
from testkit import plans
from testkit.plans import deed
from testkit.program import program
from testkit.running import quick
from testkit.waiting import until_sync

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
LIMIT_SECONDS = 1.5
"""Heartbeat, hang, start: each is shorter than the sleep."""
SLEEP_SECONDS = 4.0
TIMING = quick(heartbeat_timeout=LIMIT_SECONDS, start_deadline=60.0)
LIMITS = {"hang_timeout": f"{LIMIT_SECONDS}s", "deadline": "600s", "concurrency": 2}


def stop_all(processes):
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    until_sync(lambda: all(each.status() == psutil.STATUS_STOPPED for each in processes))


def sleep_through(client):
    """Returns when a call to the sleeping coordinator has waited for longer than any limit."""
    with pytest.raises(StageError) as caught:
        client.placement(timeout=SLEEP_SECONDS)
    assert caught.value.reason == "COORDINATOR_UNREACHABLE"


def lives(client):
    return [(each.incarnation, each.restarts) for each in client.placement().workers]


@pytest.mark.parametrize("first", ["coordinator", "workers"])
def test_whatever_slept_goes_on_where_it_was_and_nobody_is_taken_for_hung(tmp_path, first):
    plan = plans.chain(
        first=[deed("slow", seconds=LIMIT_SECONDS - 0.5, after=1)], first_fields={"limits": LIMITS}
    )
    with program(tmp_path, plan, timing=TIMING) as it:
        it.wait_until_up()
        coordinator, workers = psutil.Process(it.process.pid), it.descendants()
        with it.client() as client, client.infer("p", {}) as call:
            before = lives(client)
            call.send("x", ITEM)
            assert np.array_equal(next(call).value, ITEM)
            # The executor computes when everything stops.
            call.send("x", ITEM)
            stop_all([*workers, coordinator])
            with it.client() as other:
                sleep_through(other)

            for process in (
                [coordinator, *workers]
                if first == "coordinator"
                else [
                    *workers,
                    coordinator,
                ]
            ):
                process.send_signal(signal.SIGCONT)
                if process == coordinator:
                    # It looks at its workers before they go on.
                    until_sync(client.placement)

            assert np.array_equal(next(call).value, ITEM)
            call.end()
            assert list(call) == []
            assert lives(client) == before
            assert it.descendants() == workers
            assert len(client.run("p2", {"x": ITEM}).outputs["y"]) == 1


def test_a_deadline_that_passed_meanwhile_ends_its_request_and_nothing_else(tmp_path):
    with program(tmp_path, plans.chain(), timing=TIMING) as it:
        it.wait_until_up()
        coordinator, workers = psutil.Process(it.process.pid), it.descendants()
        with it.client() as client:
            before = lives(client)
            with client.infer("p", timeout=LIMIT_SECONDS) as call:
                call.send("x", ITEM)
                next(call)
                stop_all([*workers, coordinator])
                sleep_through(client)
                for process in (coordinator, *workers):
                    process.send_signal(signal.SIGCONT)

                with pytest.raises(StageError) as caught:
                    list(call)

            assert caught.value.reason == "DEADLINE_EXCEEDED"
            assert len(client.run("p", {"x": ITEM}).outputs["y"]) == 1
            assert lives(client) == before


def test_a_worker_that_was_starting_has_its_time_to_start(tmp_path):
    plan = plans.single(deed("slow", on="load", seconds=2.0))
    timing = quick(heartbeat_timeout=LIMIT_SECONDS, start_deadline=3.5)
    with program(tmp_path, plan, timing=timing) as it:
        log = tmp_path / "state/endpoint.json"
        until_sync(log.exists)
        [worker] = until_sync(it.descendants)
        coordinator = psutil.Process(it.process.pid)
        with it.client() as client:
            until_sync(
                lambda: any(each.evidence == "pretending" for each in client.placement().stages)
            )
            stop_all([worker, coordinator])
            sleep_through(client)
            for process in (coordinator, worker):
                process.send_signal(signal.SIGCONT)

            it.wait_until_up()

            assert lives(client) == [(1, 0)]


def test_a_worker_that_sleeps_alone_is_hung(tmp_path):
    with program(tmp_path, plans.chain(), timing=TIMING) as it:
        it.wait_until_up()
        worker = it.descendants()[0]
        with it.client() as client:
            worker.send_signal(signal.SIGSTOP)

            lost = until_sync(
                lambda: [each for each in client.placement().workers if each.last_reason]
            )

            assert [each.last_reason for each in lost] == ["WORKER_HUNG"]
            until_sync(
                lambda: all(each.phase.name == "READY" for each in client.placement().stages)
            )
