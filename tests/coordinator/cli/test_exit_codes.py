"""What `up` ends with tells how it ended: in order, cut short, or with a part of the plan gone."""

import signal

import numpy as np
import pytest

from stagewire.client import Phase, connect
from stagewire.errors import ExitCode, StageError
from testkit import interpreters, plans

from .conftest import wait_until_gone

pytestmark = pytest.mark.integration
ITEM = np.ones(3, np.float32)
HANGING_ITEM = [{"on": "item", "do": "hang_gil", "seconds": 600}]


def test_a_term_signal_waits_no_longer_than_its_limits_for_whatever_hangs(program):
    # Neither the request ends nor does its worker answer: both have their time, then it is over.
    up = program.up(program.plan(script=HANGING_ITEM))
    workers = up.children()
    with connect(program.state) as client, client.infer("numbers", {"x": ITEM}) as call:
        assert call.request_id
        up.send(signal.SIGTERM)
        with pytest.raises(StageError) as caught:
            list(call)
        # The watchdog may see it first; then the stop has cut nothing short.
        assert caught.value.reason in ("SHUTTING_DOWN", "WORKER_HUNG")

    was_cut_short = caught.value.reason == "SHUTTING_DOWN"
    assert up.end() == (ExitCode.FAULT if was_cut_short else ExitCode.OK)
    wait_until_gone(workers)
    assert not (program.state / "endpoint.json").exists()


@pytest.mark.parametrize("is_optional", [False, True], ids=["needed", "optional"])
def test_a_plan_whose_worker_is_given_up_does_not_end_well_unless_it_is_optional(
    program, is_optional
):
    code = interpreters.once_then(program.root, "raise SystemExit(0)\n")
    python = interpreters.interpreter(program.root, code)
    plan = interpreters.run_by(plans.single(), "a", python)
    plan["workers"]["a"]["optional"] = is_optional
    up = program.up(plans.write(program.root, plan))
    [worker] = up.children()
    worker.kill()
    with connect(program.state) as client:
        for state in client.watch(timeout=100):
            if state.workers[0].phase is Phase.FAILED:
                break
    status = program.run("status")
    assert status.returncode == 0
    assert "a: lost 6 times in 60 s; tried once more after 300 s;" in status.stdout

    up.send(signal.SIGTERM)

    assert up.end() == (ExitCode.OK if is_optional else ExitCode.FAULT)
    assert ("given up by then: a" in up.output) is not is_optional
