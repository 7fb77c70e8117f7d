"""Nothing outlives the coordinator: real coordinators are killed, real workers must end."""

import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).parents[3]
GONE_SECONDS = 5.0
"""Ten times what is promised, for a busy machine."""

COORDINATOR = """
import asyncio, os, sys
from pathlib import Path
from coordinator.reach.starting import StartOrder, process_starter

async def main():
    process = process_starter().start(StartOrder(
        python=Path({python!r}), module={module!r}, log_path=Path({log!r}), thread_count=1,
        message={{"parent_pid": os.getpid()}},
    ))
    {then}
    print(await process.wait(), flush=True)
    await process.aclose()

asyncio.run(main())
"""
WORKER = """
import ctypes, json, os, pathlib, subprocess, sys
from stagewire.worker.lifeline_linux import die_with_parent, end_with_input

die_with_parent()
start = json.loads(sys.stdin.buffer.readline())
die_with_parent(start["parent_pid"])
{watch}
helper = subprocess.Popen([sys.executable, "-I", "-c", {helper!r}], stdout=subprocess.PIPE)
helper.stdout.readline()
pathlib.Path({fifo!r}).write_text(f"{{os.getpid()}} {{helper.pid}}")
{then}
"""
HELPER = """
import signal
from stagewire.worker.lifeline_linux import die_with_parent
die_with_parent()
print("ready", flush=True)
signal.pause()
"""
PLAIN_HELPER = "import signal; print('ready', flush=True); signal.pause()"
HOLD_THE_GIL = "ctypes.PyDLL(None).sleep(1000)"
WAIT = "import signal; signal.pause()"


@pytest.fixture
def scene(bare_environment, tmp_path):
    """Starts a coordinator with one worker; returns it with pidfds of the worker and its helper."""
    coordinators, pidfds = [], []

    def play(*, watch="end_with_input()", helper=HELPER, then=WAIT, coordinator_then=""):
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        code = WORKER.format(watch=watch, helper=helper, fifo=str(fifo), then=then)
        module = bare_environment.write_module(f"worker_{os.urandom(6).hex()}", code)
        script = COORDINATOR.format(
            python=str(bare_environment.python),
            module=module,
            log=str(tmp_path / "worker.log"),
            then=coordinator_then,
        )
        coordinator = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        coordinators.append(coordinator)
        worker, helper_of_worker = (os.pidfd_open(int(pid)) for pid in fifo.read_text().split())
        pidfds.extend((worker, helper_of_worker))
        return coordinator, worker, helper_of_worker

    yield play
    for coordinator in coordinators:
        coordinator.kill()
        coordinator.communicate()
    for pidfd in pidfds:
        os.close(pidfd)


def is_gone(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], GONE_SECONDS)[0])


@pytest.mark.parametrize("then", [WAIT, HOLD_THE_GIL], ids=["idle", "holds the GIL"])
@pytest.mark.parametrize("watch", ["end_with_input()", ""], ids=["watched", "signal alone"])
def test_a_worker_and_its_helper_end_when_the_coordinator_is_killed(scene, then, watch):
    coordinator, worker, helper = scene(watch=watch, then=then)

    coordinator.kill()

    assert is_gone(worker)
    assert is_gone(helper)


def test_a_stopped_worker_ends_too(scene):
    coordinator, worker, helper = scene()
    signal.pidfd_send_signal(worker, signal.SIGSTOP)

    coordinator.kill()

    assert is_gone(worker)
    assert is_gone(helper)


def test_the_end_of_input_alone_ends_the_whole_group(scene):
    coordinator, worker, helper = scene(
        helper=PLAIN_HELPER,
        coordinator_then="await asyncio.to_thread(sys.stdin.readline); process.close_input()",
    )

    coordinator.stdin.write(b"close\n")
    coordinator.stdin.flush()

    assert is_gone(worker)
    assert is_gone(helper)
    assert coordinator.stdout.readline() == b"killed by SIGKILL\n"


def test_a_worker_whose_parent_died_before_it_could_bind_itself_ends(bare_environment):
    code = (
        "from stagewire.worker.lifeline_linux import die_with_parent; die_with_parent(1); print(1)"
    )
    if os.getpid() == 1:
        code = code.replace("(1)", "(2)", 1)

    result = subprocess.run(
        [bare_environment.python, "-I", "-c", code], capture_output=True, check=False
    )

    assert (result.returncode, result.stdout) == (70, b"")


def test_a_process_that_leads_no_group_ends_alone(bare_environment):
    code = """
import os, subprocess, sys
child = subprocess.run(
    [sys.executable, "-I", "-c", "import signal; from stagewire.worker.lifeline_linux import"
     " end_with_input; end_with_input(); signal.pause()"], stdin=subprocess.DEVNULL)
print(child.returncode)
"""
    result = subprocess.run(
        [bare_environment.python, "-I", "-c", code],
        capture_output=True,
        check=False,
        start_new_session=True,
    )

    assert (result.returncode, result.stdout) == (0, b"70\n")
