"""A worker that lives and is not ready in time: killed, and it is said what was waited for."""

import signal

import numpy as np
import pytest

from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.policy import RestartLimits
from stagewire.errors import StageError
from testkit import interpreters, plans
from testkit.plans import deed
from testkit.running import make, quick, running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
SHORT = quick(start_deadline=3.0, leave=1.0)


async def late(tmp_path, plan):
    """Brings up a plan whose worker is late; returns how that is said, with nothing left of it."""
    coordinator = make(tmp_path, plan, timing=SHORT)
    with pytest.raises(StageError) as caught:
        async with coordinator.running():
            pytest.fail("the plan came up")
    lines = coordinator.design.ledger.snapshot().reservations
    assert {line.state.value for line in lines} == {"promised"}
    assert caught.value.reason == "START_DEADLINE"
    assert "not ready after 3 s" in caught.value.message
    return caught.value.facts["awaited"]


async def test_one_that_never_says_hello(tmp_path):
    python = interpreters.interpreter(tmp_path, interpreters.SILENT)

    awaited = await late(tmp_path, interpreters.run_by(plans.single(), "a", python))

    assert awaited == "its Hello"


async def test_one_that_says_hello_and_answers_no_order(tmp_path):
    python = interpreters.interpreter(tmp_path, interpreters.HELLO_ALONE)

    awaited = await late(tmp_path, interpreters.run_by(plans.single(), "a", python))

    assert awaited == "stage 'one' (loading)"


async def test_one_that_loads_for_ever(tmp_path):
    awaited = await late(tmp_path, plans.single(deed("slow", on="load", seconds=600)))

    # What the executor says of its load.
    assert awaited == "stage 'one' (pretending)"


async def test_a_later_start_has_the_same_limit_and_counts_as_a_loss(tmp_path):
    code = interpreters.once_then(tmp_path, interpreters.SILENT)
    plan = interpreters.run_by(plans.chain(), "a", interpreters.interpreter(tmp_path, code))
    limits = RestartLimits(first_delay_seconds=0.01, intensity=1)
    async with running(tmp_path, plan, timing=SHORT, restarts=limits, checks=False) as it:
        it.signal("a", signal.SIGKILL)
        await until(lambda: it.phase("a") is WorkerPhase.FAILED)

        error = await it.failure(it.client.run, "p1", {"x": ITEM})
        state = (await it.ask(it.client.placement)).workers[0]

        assert (error.reason, "START_DEADLINE" in error.message) == ("STAGE_FAILED", True)
        assert (state.last_reason, state.restarts) == ("START_DEADLINE", 1)
        assert state.prospect.startswith("lost 2 times in 60 s; tried once more after 300 s; ")
        await it.run("p2", {"x": ITEM})
