import contextlib
import os
import subprocess
import sys

import pytest

from benchmarks.running import preflight

pytestmark = pytest.mark.integration

SPIN = "import os; os.sched_setaffinity(0, {%d}); print(flush=True)\nwhile True: pass"


@contextlib.contextmanager
def spinning(core):
    with subprocess.Popen(
        [sys.executable, "-c", SPIN % core], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def test_a_spinning_process_makes_its_core_busy_and_is_named():
    core = max(os.sched_getaffinity(0))

    with spinning(core) as pid:
        found = preflight.look()

    assert not found.is_quiet
    # Whoever else runs here shares the core, and the two are busy together.
    assert found.cores[core].busy > 0.5
    assert pid in [process.pid for process in found.busiest]


def test_cores_that_this_process_may_not_use_do_not_count():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})

        assert preflight.look().cores.keys() == {min(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)


def test_waiting_for_a_quiet_machine_has_an_end():
    said = []

    with spinning(min(os.sched_getaffinity(0))):
        found = preflight.wait_until_quiet(0.01, said.append)

    assert not found.is_quiet
    assert len(said) <= 1
