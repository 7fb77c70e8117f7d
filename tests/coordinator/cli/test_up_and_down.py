"""Bringing a plan up and down, with signals at every moment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from stagewire.client import connect
from stagewire.errors import ExitCode, ShuttingDownError

from .conftest import PROGRAM, SECONDS, wait_for_children, wait_until_gone

pytestmark = pytest.mark.integration
VOICE = Path(__file__).resolve().parents[3] / "plans" / "voice.yaml"
SLOW_LOAD = [{"on": "load", "do": "slow", "seconds": 600}]
SLOW_ITEM = [{"on": "item", "do": "slow", "seconds": 2}]
HANGING_ITEM = [{"on": "item", "do": "slow", "seconds": 600}]


def assert_nothing_is_left(program):
    assert not (program.state / "endpoint.json").exists()
    assert list(program.temporary.iterdir()) == []


def test_a_plan_comes_up_and_down(program):
    up = program.up(program.plan())
    workers = up.children()
    assert len(workers) >= 2

    down = program.run("down")

    assert (down.returncode, down.stdout) == (0, "stopped fake\n")
    assert up.process.poll() is not None, "down returns when the process is gone"
    assert up.end() == 0
    wait_until_gone(workers)
    assert_nothing_is_left(program)
    assert "stage one: loaded in" in up.output
    assert "worker a: ready" in up.output
    assert up.lines[-1] == "stopped"
    assert "ready plan=fake" in (program.state / "logs" / "coordinator.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_stops(program, number):
    up = program.up(program.plan())
    workers = up.children()
    up.send(number)
    assert up.end() == 0
    wait_until_gone(workers)
    assert_nothing_is_left(program)


def test_a_running_request_is_waited_for(program):
    up = program.up(program.plan(script=SLOW_ITEM))
    with (
        connect(program.state) as client,
        client.infer("numbers", {"x": np.ones(3, np.float32)}) as call,
    ):
        assert call.request_id
        down = program.run("down", "--timeout", "100")
        assert down.returncode == 0, down.stderr
        assert "waiting for 1 requests" in down.stderr
        assert [output.port for output in call] == ["y"]
    assert up.end() == 0


def test_a_signal_drains_when_nobody_reads_any_more(program):
    # As in `up 2>&1 | tee log`, where Ctrl-C ends the reader too.
    reader, writer = os.pipe()
    with subprocess.Popen(
        [*PROGRAM, "up", "--plan", program.plan(script=SLOW_ITEM)],
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
    ) as up:
        os.close(writer)
        with os.fdopen(reader) as lines:
            assert any("READY" in line for line in lines)
            with (
                connect(program.state) as client,
                client.infer("numbers", {"x": np.ones(3, np.float32)}) as call,
            ):
                assert call.request_id
                lines.close()
                up.send_signal(signal.SIGINT)
                assert [output.port for output in call] == ["y"]
        assert up.wait(SECONDS) == 0
    assert_nothing_is_left(program)


def test_one_that_does_not_answer_is_ended_by_the_command_that_is_named(program):
    up = program.up(program.plan())
    up.send(signal.SIGSTOP)
    down = program.run("down")
    assert down.returncode == ExitCode.FAULT
    assert f"end it with `kill -9 {up.process.pid}`" in down.stderr
    up.send(signal.SIGKILL)
    assert up.end() == -signal.SIGKILL


def test_a_hint_names_the_folder_that_it_is_about(program):
    other = program.root / "another folder"
    up = program.up(program.plan(), "--state", other)
    refused = program.run("up", "--plan", program.plan(), "--state", other)
    assert refused.returncode == ExitCode.HELD
    assert f"coordinator down --state '{other}'" in refused.stderr
    assert program.run("down", "--state", other).returncode == 0
    assert up.end() == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_fault_of_the_program(program, closed):
    script = f'exec "$@" {closed}'
    result = program.run("status", before=("sh", "-c", script, "sh"))
    assert result.returncode == ExitCode.FAULT
    assert "INTERNAL" not in result.stderr
    assert "Traceback" not in result.stderr


def test_a_request_that_takes_too_long_is_cut_short_and_said_so(program):
    up = program.up(program.plan(script=HANGING_ITEM))
    with (
        connect(program.state) as client,
        client.infer("numbers", {"x": np.ones(3, np.float32)}) as call,
    ):
        assert call.request_id
        assert program.run("down", "--timeout", "0").returncode == 0
        with pytest.raises(ShuttingDownError):
            list(call)
    assert up.end() == ExitCode.FAULT
    assert "1 requests were cut short" in up.output


def test_ctrl_c_while_loading_ends_with_130_and_leaves_nothing(program):
    up = program.start("up", "--plan", program.plan(script=SLOW_LOAD))
    up.wait_for("stage one: pretending")
    workers = wait_for_children(up, 2)

    up.send(signal.SIGINT)

    assert up.end() == ExitCode.INTERRUPTED
    assert "Traceback" not in up.output
    wait_until_gone(workers)
    assert_nothing_is_left(program)
    assert program.run("down").returncode == ExitCode.FAULT


def test_a_second_ctrl_c_stops_at_once(program):
    up = program.up(program.plan(script=HANGING_ITEM))
    workers = up.children()
    with (
        connect(program.state) as client,
        client.infer("numbers", {"x": np.ones(3, np.float32)}) as call,
    ):
        assert call.request_id
        up.send(signal.SIGINT)
        up.wait_for("once more to stop at once")
        up.send(signal.SIGINT)
        assert up.end() == ExitCode.INTERRUPTED
    wait_until_gone(workers)
    assert_nothing_is_left(program)


def test_down_while_loading_stops_it(program):
    up = program.start("up", "--plan", program.plan(script=SLOW_LOAD))
    up.wait_for("stage one: pretending")
    assert program.run("down").returncode == 0
    assert up.end() == 0
    assert "stopped before it was ready" in up.output


def test_a_second_coordinator_on_the_same_state_ends_with_75(program):
    up = program.up(program.plan())
    second = program.run("up", "--plan", program.plan())
    assert second.returncode == ExitCode.HELD
    assert "STATE_HELD: " in second.stderr
    assert program.run("status").returncode == 0, "the first one is not disturbed"
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_two_coordinators_with_folders_of_their_own_live_side_by_side(program):
    first = program.up(program.plan())
    second = program.up(program.plan(), "--state", program.root / "other")
    for started, state in ((first, program.state), (second, program.root / "other")):
        assert program.run("down", "--state", state).returncode == 0
        assert started.end() == 0


def test_down_without_a_coordinator_says_so(program):
    result = program.run("down")
    assert result.returncode == ExitCode.FAULT
    assert result.stderr.startswith("COORDINATOR_UNREACHABLE: no coordinator is running on")


def test_a_killed_coordinator_takes_its_workers_along_and_leaves_the_state_usable(program):
    up = program.up(program.plan())
    workers = up.children()
    up.send(signal.SIGKILL)
    up.end()
    wait_until_gone(workers)
    assert program.run("down").returncode == ExitCode.FAULT
    again = program.up(program.plan())
    again.send(signal.SIGTERM)
    assert again.end() == 0


@pytest.mark.parametrize(
    "address", ["localhost:1", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:65536", ""]
)
def test_an_address_that_cannot_be_is_wrong_usage_before_anything_is_looked_at(program, address):
    # Of a plan that is refused as well, so that the address is seen to come first.
    (program.root / "broken.yaml").write_text("{}")
    result = program.run("up", "--plan", "broken.yaml", "--listen", address)
    assert result.returncode == ExitCode.USAGE
    assert "no address with a port, such as 127.0.0.1:5000" in result.stderr
    assert "PLAN_INVALID" not in result.stderr
    assert_nothing_is_left(program)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:5000", "192.0.2.1:5000"])
def test_an_address_that_others_could_reach_is_unsafe(program, address):
    (program.root / "broken.yaml").write_text("{}")
    result = program.run("up", "--plan", "broken.yaml", "--listen", address)
    assert result.returncode == ExitCode.UNSAFE_CONFIGURATION
    assert result.stderr.startswith("BIND_UNSAFE: ")
    assert "listen on 127.0.0.1:PORT" in result.stderr
    assert_nothing_is_left(program)


def test_an_address_on_loopback_is_taken(program):
    up = program.up(program.plan(), "--listen", "127.0.0.2:0")
    assert "READY fake at 127.0.0.2:" in up.output
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_results_alone_go_to_a_pipe_and_progress_beside_it(program):
    with (program.root / "errors").open("w") as errors:
        up = program.start("up", "--plan", program.plan(), errors=errors)
        ready = up.wait_for("READY")
        up.send(signal.SIGINT)
        assert up.end() == 0
    assert up.lines == [ready]
    beside = (program.root / "errors").read_text()
    for part in ("worker a: ready", "stage one: loaded in", "stop it with", "stopping", "stopped"):
        assert part in beside


def test_a_stage_that_cannot_load_fails_the_start_and_shows_why(program):
    result = program.run("up", "--plan", program.plan(script=[{"on": "load", "do": "refuse"}]))
    assert result.returncode == ExitCode.FAULT
    assert "LOAD_FAILED: stage 'one' refuses to be loaded" in result.stderr
    assert "never retrieved" not in result.stderr
    assert_nothing_is_left(program)


def test_a_worker_that_dies_while_it_loads_fails_the_start(program):
    result = program.run("up", "--plan", program.plan(script=[{"on": "load", "do": "crash"}]))
    assert result.returncode == ExitCode.FAULT
    assert "WORKER_START_FAILED: " in result.stderr


def test_an_environment_that_may_not_be_downloaded_is_refused(program):
    # Nobody can be asked, and nothing allows it: both caches are empty.
    result = program.run(
        "up",
        "--plan",
        VOICE,
        UV_OFFLINE="1",
        UV_CACHE_DIR=str(program.root / "uv"),
    )
    assert result.returncode == ExitCode.REFUSED
    assert result.stdout == ""
    assert "To be downloaded once:" in result.stderr
    assert "GPL-3.0" in result.stderr
    assert "ARTIFACT_MISSING: " in result.stderr


def test_a_worker_is_started_again_on_request(program):
    up = program.up(program.plan())
    victim = next(p for p in up.children() if "stagewire.worker.fake" in p.cmdline())
    victim.kill()
    with connect(program.state) as client:
        for state in client.watch(timeout=100):
            if any(worker.restarts for worker in state.workers):
                assert state.phase.name in ("RESTARTING", "STARTING", "READY")
                break
        # It may be back before this command is.
        restart = program.run("restart", "a")
        assert restart.returncode == 0 or "WORKER_READY: " in restart.stderr
        unknown = program.run("restart", "nobody")
        assert unknown.returncode == ExitCode.REFUSED
        assert "WORKER_UNKNOWN: " in unknown.stderr
        for state in client.watch(timeout=100):
            if all(stage.phase.name == "READY" for stage in state.stages):
                break
    ready = program.run("restart", "a")
    assert ready.returncode == ExitCode.REFUSED
    assert "WORKER_READY: worker 'a' is ready; nothing is started" in ready.stderr
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_this_interpreter_runs_the_workers(program):
    up = program.up(program.plan())
    workers = [p for p in up.children() if "stagewire.worker.fake" in p.cmdline()]
    assert len(workers) == 2
    assert all(psutil.Process(p.pid).cmdline()[0] == sys.executable for p in workers)
    up.send(signal.SIGINT)
    assert up.end() == 0
