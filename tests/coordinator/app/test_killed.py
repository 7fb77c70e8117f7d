"""Nothing outlives a coordinator that is killed, and its successor starts where it left things."""

import os
import signal

import numpy as np
import pytest

from stagewire.client import connect
from stagewire.endpoint import FILE_NAME, read_endpoint
from stagewire.errors import StageError
from testkit import plans
from testkit.leaks import living_members
from testkit.plans import deed
from testkit.program import program
from testkit.waiting import until_sync

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
GONE_SECONDS = 5.0
"""Ten times what is promised, for a busy machine."""


def are_gone(processes):
    return until_sync(
        lambda: not any(living_members(process.pid) for process in processes), GONE_SECONDS
    )


def test_no_worker_outlives_a_killed_coordinator(tmp_path):
    with program(tmp_path, plans.chain()) as it:
        it.wait_until_up()
        with it.client() as client:
            client.run("p", {"x": ITEM})
            workers = it.descendants()
            assert len(workers) == 2

            it.process.kill()

            assert are_gone(workers)
            with pytest.raises(StageError) as caught:
                client.run("p", {"x": ITEM}, timeout=10)
            assert caught.value.reason == "COORDINATOR_UNREACHABLE"


def test_a_caller_in_a_request_is_told_when_the_coordinator_is_killed(tmp_path):
    with program(tmp_path, plans.single()) as it:
        it.wait_until_up()
        with it.client() as client, client.infer("p") as call:
            call.send("x", ITEM)
            next(call)
            it.process.kill()
            with pytest.raises(StageError) as caught:
                next(call)

    assert caught.value.reason == "COORDINATOR_UNREACHABLE"


BLOCKS = [deed("flood", size_bytes=1), deed("hang_gil", seconds=600)]


@pytest.mark.parametrize(
    "script",
    [[deed("flood", size_bytes=1), deed("child", seconds=600)], BLOCKS],
    ids=["with a process of its own", "with its interpreter blocked"],
)
def test_a_worker_ends_with_its_coordinator_whatever_it_does(tmp_path, script):
    with program(tmp_path, plans.single(*script, limits={"deadline": "600s"})) as it:
        it.wait_until_up()
        with it.client() as client, client.infer("p") as call:
            call.send("x", ITEM)
            if script is not BLOCKS:
                next(call)
            log = tmp_path / "state/logs/a.log"
            until_sync(lambda: log.read_bytes().endswith(b"x"))
            processes = it.descendants()
            assert len(processes) == (1 if script is BLOCKS else 2)

            it.process.kill()

            assert are_gone(processes)


def test_a_stopped_worker_ends_with_its_coordinator(tmp_path):
    with program(tmp_path, plans.chain()) as it:
        it.wait_until_up()
        workers = it.descendants()
        os.kill(workers[0].pid, signal.SIGSTOP)

        it.process.kill()

        assert are_gone(workers)


def test_a_coordinator_that_is_killed_while_loading_leaves_no_worker(tmp_path):
    with program(tmp_path, plans.single(deed("slow", on="load", seconds=600))) as it:
        workers = until_sync(it.descendants)
        log = tmp_path / "state/logs/a.log"
        until_sync(log.exists)

        it.process.kill()

        assert are_gone(workers)


def test_a_successor_starts_over_what_a_killed_one_left(tmp_path):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        first.process.kill()
        first.process.wait()
        assert (tmp_path / "state" / FILE_NAME).exists()

        with program(tmp_path, plans.single()) as second:
            second.wait_until_up()
            assert read_endpoint(tmp_path / "state").pid == second.process.pid
            with second.client() as client:
                assert len(client.run("p", {"x": ITEM}).outputs["y"]) == 1


def test_a_second_program_on_the_same_state_ends_with_code_75_and_harms_nobody(tmp_path):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        with program(tmp_path, plans.single()) as second:
            out, _ = second.process.communicate(timeout=60)

        assert (second.process.returncode, out) == (75, "STATE_HELD\n")
        with first.client() as client:
            assert len(client.run("p", {"x": ITEM}).outputs["y"]) == 1


def failure_of(function, *values, **named):
    with pytest.raises(StageError) as caught:
        function(*values, **named)
    assert caught.value.reason == "COORDINATOR_UNREACHABLE"
    return caught.value.message


def test_whoever_asks_a_killed_coordinator_is_told_that_it_is_gone(tmp_path):
    state = tmp_path / "state"
    with program(tmp_path, plans.single()) as it:
        it.wait_until_up()
        with it.client() as client:
            client.run("p", {"x": ITEM})
            it.process.kill()
            it.process.wait()

            gone = f"{state / FILE_NAME} is not running any more: process {it.process.pid} "
            assert gone in failure_of(client.run, "p", {"x": ITEM})
            assert gone in failure_of(client.run, "p", {"x": 1.0})
            assert gone in failure_of(client.placement)
            assert gone in failure_of(lambda: next(client.watch()))
            with client.infer("p") as call:
                assert gone in failure_of(next, call)
        assert gone in failure_of(connect, state)


def test_whoever_asks_a_frozen_coordinator_is_told_that_it_runs(tmp_path):
    with program(tmp_path, plans.single()) as it:
        it.wait_until_up()
        with it.client() as client:
            client.placement()
            it.process.send_signal(signal.SIGSTOP)

            message = failure_of(client.placement, timeout=0.5)

            assert f"process {it.process.pid}, does not answer at" in message
            it.process.send_signal(signal.SIGCONT)
            assert client.placement().pipelines


def test_whoever_looks_at_a_call_after_the_next_start_is_told_of_that(tmp_path):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        with first.client() as client:
            states = client.watch()
            next(states)
            first.process.kill()
            first.process.wait()
            with program(tmp_path, plans.single()) as second:
                second.wait_until_up()

                message = failure_of(next, states)

                assert f"started again since, as process {second.process.pid};" in message
                assert client.placement().pipelines


def test_a_coordinator_that_stopped_in_order_is_not_said_to_have_been_killed(tmp_path):
    with program(tmp_path, plans.single()) as it:
        it.wait_until_up()
        with it.client() as client:
            it.stop()
            assert it.process.wait(60) == 0

            assert "no coordinator is running on the state folder" in failure_of(client.placement)
