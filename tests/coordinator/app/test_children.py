"""Stages with a process of their own: it ends with its worker, which does not end with it."""

import asyncio
import os
import signal

import numpy as np
import psutil
import pytest

from coordinator.facts.ids import WorkerId
from testkit import plans
from testkit.leaks import living_members
from testkit.plans import deed
from testkit.program import program
from testkit.running import running
from testkit.waiting import until, until_sync

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.zeros(4, np.float32)
BAD = np.ones(4, np.float32)
GONE_SECONDS = 5.0
"""Ten times what is promised, for a busy machine."""


def in_child(*script, worker="a", **fields):
    return plans.stage(worker, **fields | {"options": {"in_child": True, "script": list(script)}})


def two_stages(*script, **fields):
    """Stage `one` in a child and `two` in the process of the same worker; a pipeline for each."""
    return plans.plan(
        {"one": in_child(*script, **fields), "two": plans.stage("a")},
        {
            "p1": plans.pipeline({"x": "one.x"}, {"y": "one.y"}),
            "p2": plans.pipeline({"x": "two.x"}, {"y": "two.y"}),
        },
    )


def child_of(worker_pid):
    [child] = psutil.Process(worker_pid).children()
    return child


def are_gone(processes):
    until_sync(lambda: not any(living_members(it.pid) for it in processes), GONE_SECONDS)


HARM = [
    ["nothing"],
    [deed("flood", size_bytes=1), deed("hang_gil", seconds=600)],
    ["stop"],
]


@pytest.mark.parametrize("killed", ["coordinator", "worker"])
@pytest.mark.parametrize("harm", HARM, ids=["idle", "with its interpreter blocked", "stopped"])
def test_a_child_ends_with_its_worker_and_with_the_coordinator(tmp_path, killed, harm):
    script = [line for line in harm if not isinstance(line, str)]
    fields = {"limits": {"deadline": "600s", "hang_timeout": "600s"}}
    with program(tmp_path, two_stages(*script, **fields)) as it:
        it.wait_until_up()
        worker, child = sorted(
            it.descendants(), key=lambda process: process.ppid() != it.process.pid
        )
        assert child.ppid() == worker.pid
        with it.client() as client, client.infer("p1") as call:
            if script:
                call.send("x", ITEM)
                log = tmp_path / "state/logs/a.log"
                until_sync(lambda: log.read_bytes().endswith(b"x"))
            if harm == ["stop"]:
                child.send_signal(signal.SIGSTOP)

            if killed == "coordinator":
                it.process.kill()
                are_gone([worker, child])
            else:
                worker.kill()
                are_gone([child])


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([deed("crash", value=1.0)], "STAGE_LOST"),
        ([deed("exit", value=1.0)], "STAGE_LOST"),
        ([deed("hang_gil", seconds=600, value=1.0)], "STAGE_HUNG"),
        ([deed("hang", seconds=600, value=1.0)], "STAGE_HUNG"),
    ],
    ids=["killed", "exit 0", "hangs with the interpreter", "hangs"],
)
async def test_what_ends_a_child_leaves_its_worker_and_the_other_stages_alone(
    tmp_path, script, reason
):
    plan = two_stages(*script, limits={"hang_timeout": "2s"})
    async with running(tmp_path, plan) as it:
        before = it.incarnation("a")
        other = asyncio.create_task(it.run("p2", {"x": ITEM}))

        failure = await it.failure(it.client.run, "p1", {"x": BAD})

        assert failure.reason == reason
        assert len((await other).outputs["y"]) == 1
        assert len((await it.run("p2", {"x": ITEM})).outputs["y"]) == 1
        assert len((await it.run("p1", {"x": ITEM})).outputs["y"]) == 1
        assert it.incarnation("a") == before


async def test_the_worker_is_told_apart_from_a_child_that_is_stopped(tmp_path):
    async with running(tmp_path, two_stages(limits={"hang_timeout": "2s"})) as it:
        before = it.incarnation("a")
        child_of(it.pid("a")).send_signal(signal.SIGSTOP)

        assert (await it.failure(it.client.run, "p1", {"x": ITEM})).reason == "STAGE_HUNG"

        assert len((await it.run("p1", {"x": ITEM})).outputs["y"]) == 1
        assert it.incarnation("a") == before


async def test_the_memory_of_a_child_counts_as_its_workers_and_as_its_stages(tmp_path):
    script = [deed("leak", size_bytes=64 << 20, value=1.0)]
    async with running(tmp_path, two_stages(*script, memory={"resident": "256MiB"})) as it:
        attached = it.attached("a")

        def memory():
            return attached.heartbeat.memory

        await until(lambda: attached.heartbeat)
        before = memory().anonymous_pss_bytes
        worker = psutil.Process(it.pid("a")).memory_full_info()
        assert before > worker.uss - (4 << 20)
        assert it.coordinator.lives[WorkerId("a")].hosting.stages["one"].measured_bytes > 8 << 20

        await it.run("p1", {"x": BAD})

        await until(lambda: memory().anonymous_pss_bytes > before + (56 << 20))
        assert memory().peak_bytes >= memory().anonymous_pss_bytes


async def test_a_released_worker_leaves_no_child(tmp_path):
    async with running(tmp_path, two_stages()) as it:
        child = child_of(it.pid("a"))
        assert os.getpgid(child.pid) == it.pid("a")
    are_gone([child])
