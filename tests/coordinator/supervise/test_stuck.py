"""A worker that is killed and does not end, as in the hands of a driver: bounded, and said."""

import contextlib
import ctypes
import os
import signal

import numpy as np
import pytest

from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.policy import RestartLimits
from stagewire.client import Phase
from stagewire.endpoint import FILE_NAME
from testkit import plans
from testkit.program import program
from testkit.running import quick, running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
STOP_SECONDS = 60
"""Four times what the limits of a stop add up to, for a busy machine."""
_SEIZE, _CONTINUE, _STOP_AT_EXIT = 0x4206, 7, 0x40


def ptrace(request, pid, option=0):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, pid, None, option):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def held_at_its_end(pid):
    """Keeps a descendant from ending, however it is killed, until the block ends.

    A traced process stops inside of its exit, still with its memory; no signal wakes it there.
    """
    ptrace(_SEIZE, pid, _STOP_AT_EXIT)
    try:
        yield
    finally:
        ptrace(_CONTINUE, pid)


async def test_its_memory_stays_reserved_and_its_worker_is_started_when_it_is_gone(
    tmp_path, error_log
):
    limits = RestartLimits(first_delay_seconds=0.01, end_seconds=0.2)
    timing = quick(heartbeat_timeout=600.0)
    async with running(tmp_path, plans.chain(), timing=timing, restarts=limits) as it:
        pid, before = it.pid("a"), (await it.ask(it.client.placement)).ledger
        with held_at_its_end(pid):
            it.signal("a", signal.SIGKILL)
            await until(lambda: it.phase("a") is WorkerPhase.FAILED)

            state = await it.ask(it.client.placement)
            assert (state.workers[0].phase, state.workers[0].last_reason) == (
                Phase.FAILED,
                "WORKER_STUCK",
            )
            assert state.ledger.constraints == before.constraints
            assert {
                line.state.value
                for line in it.coordinator.design.ledger.snapshot().reservations
                if line.reservation.process == "worker:a"
            } == {"quarantined"}
            error = await it.failure(it.client.run, "p1", {"x": ITEM})
            assert (error.reason, "WORKER_STUCK" in error.message) == ("STAGE_FAILED", True)
            await it.run("p2", {"x": ITEM})
        await it.until_ready("one", after=1)
        await it.run("p", {"x": ITEM})
    assert error_log.pop().endswith(f"process did not end worker=a pid={pid}")


def test_a_stop_goes_on_without_it_and_ends_with_code_1(tmp_path):
    with program(tmp_path, plans.chain()) as it:
        it.wait_until_up()
        workers = it.descendants()
        stuck = min(workers, key=lambda worker: worker.create_time())
        with held_at_its_end(stuck.pid):
            with it.client() as client:
                client.run("p", {"x": ITEM})
            it.stop()

            out, _ = it.process.communicate(timeout=STOP_SECONDS)

            assert (it.process.returncode, out) == (1, "WORKER_STUCK\n")
            assert stuck.is_running()
            assert not [worker for worker in workers if worker != stuck and worker.is_running()]
            assert not (tmp_path / "state" / FILE_NAME).exists()
            log = (tmp_path / "state/logs/coordinator.log").read_text()
            assert f"process did not end worker=a pid={stuck.pid}" in log
        # It is this process's child by now.
        os.waitpid(stuck.pid, 0)
