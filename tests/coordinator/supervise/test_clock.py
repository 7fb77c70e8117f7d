"""The clock on the wall is set while everything runs: nothing happens, monotonic time alone counts.

Only Python's view of that clock is patched. gRPC takes the difference of two readings of it for the
timeout of a call, one of them its own, so that calls here carry none.
"""

import ast
import re
import time
from pathlib import Path

import numpy as np
import pytest

from stagewire.errors import StageError
from testkit import interpreters, plans
from testkit.plans import deed
from testkit.program import program
from testkit.running import quick
from testkit.waiting import until_sync

REPOSITORY = Path(__file__).parents[3]
ITEM = np.ones(4, np.float32)
HOUR = 3600
PATCH = """
import pathlib, time
_shift = pathlib.Path({path!r})
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + float(_shift.read_text())
time.time_ns = lambda: _time_ns() + int(1e9 * float(_shift.read_text()))
"""


def logged_hours(log: Path) -> set[int]:
    """Returns by how many hours the lines of a log are off, as their times say."""
    stamps = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} ", log.read_text(), re.MULTILINE)
    times = (time.mktime(time.strptime(stamp, "%Y-%m-%d %H:%M:%S")) for stamp in stamps)
    return {round((each - time.time()) / HOUR) for each in times}


@pytest.mark.integration
@pytest.mark.usefixtures("leak_probe")
@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_changes_nothing(tmp_path, hours):
    shift = tmp_path / "shift"
    shift.write_text("0")
    patch = PATCH.format(path=str(shift))
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(patch)
    python = interpreters.interpreter(tmp_path, patch + interpreters.FAKE)
    # A value at which the worker writes into its log.
    plan = interpreters.run_by(plans.single(deed("raise", value=13.0)), "a", python)
    timing = quick(heartbeat_timeout=30.0)
    with program(tmp_path, plan, timing=timing, PYTHONPATH=str(tmp_path / "site")) as it:
        it.wait_until_up()
        with it.client() as client:
            with client.infer("p") as call:
                call.send("x", ITEM)
                next(call)
                before = client.placement()

                shift.write_text(str(hours * HOUR))

                call.send("x", ITEM)
                assert np.array_equal(next(call).value, ITEM)
                call.end()
                assert list(call) == []
            assert len(client.run("p", {"x": ITEM}).outputs["y"]) == 1
            with pytest.raises(StageError) as caught:
                client.run("p", {"x": np.full(4, 13, np.float32)})
            assert caught.value.reason == "STAGE_FAULT"
            assert hours in logged_hours(tmp_path / "state/logs/a.log")
            after = client.placement()
            assert [each.incarnation for each in after.workers] == [
                each.incarnation for each in before.workers
            ]
            # Also what is started by that clock.
            [worker] = it.descendants()
            worker.kill()
            until_sync(lambda: client.placement().workers[0].incarnation == 2)
            until_sync(lambda: client.placement().workers[0].phase.name == "READY")
            assert len(client.run("p", {"x": ITEM}).outputs["y"]) == 1
        it.stop()
        assert it.process.wait(60) == 0
    assert hours in logged_hours(tmp_path / "state/logs/coordinator.log")


@pytest.mark.unit
@pytest.mark.parametrize("package", ["coordinator", "sdk/stagewire", "workers"])
def test_no_time_limit_reads_the_clock_on_the_wall(package):
    asked = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in (REPOSITORY / package).rglob("*.py")
        if not {".venv", "tests"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr)
        in {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
    ]

    assert asked == []
