"""A worker of a wire version that does not exist is named on both sides, and started once."""

import json

import pytest

from stagewire import WIRE_VERSION
from stagewire.errors import ExitCode
from testkit import plans
from testkit.interpreters import FAKE, interpreter, run_by

pytestmark = pytest.mark.integration

OTHER_VERSION = 99


@pytest.fixture
def foreign(ends, tmp_path):
    """An interpreter whose worker notes that it was started and speaks another wire version."""
    starts = tmp_path / "starts"
    code = (
        f"open({str(starts)!r}, 'a').write('started\\n')\n"
        f"import stagewire\nstagewire.WIRE_VERSION = {OTHER_VERSION}\n{FAKE}"
    )
    return interpreter(tmp_path, code, ends.worker_python(ends.worker)), starts


def plan_of(ends, foreign, **fields):
    plan = plans.plan(
        {"one": plans.stage("a"), "two": plans.stage("b")},
        {
            "p": plans.pipeline({"x": "one.x"}, {"y": "one.y"}),
            "q": plans.pipeline({"x": "two.x"}, {"y": "two.y"}),
        },
    )
    run_by(plan, "a", foreign)
    run_by(plan, "b", str(ends.worker_python(ends.worker)))
    plan["workers"]["a"] |= fields
    return plan


def assert_both_versions_are_named(text):
    assert f"wire version {OTHER_VERSION}" in text
    assert f"this coordinator {WIRE_VERSION}" in text
    assert "'a'" in text


def test_a_plan_that_needs_it_is_refused(ends, foreign):
    path, starts = foreign
    plan = plans.write(ends.folder, plan_of(ends, path))

    result = ends.ask("up", "--plan", plan)

    assert result.returncode == ExitCode.REFUSED
    assert "WIRE_VERSION_MISMATCH: " in result.stderr
    assert_both_versions_are_named(result.stderr)
    assert starts.read_text().splitlines() == ["started"]


def test_a_plan_that_can_do_without_it_comes_up_and_says_so(ends, foreign):
    path, starts = foreign
    log = ends.state / "logs" / "a.log"
    log.unlink(missing_ok=True)

    with ends.up(plan_of(ends, path, optional=True)):
        state = json.loads(ends.ask("status", "--json").stdout)

    workers = {worker["worker_id"]: worker for worker in state["workers"]}
    assert workers["a"]["phase"] == "failed"
    assert workers["a"]["last_reason"] == "WIRE_VERSION_MISMATCH"
    assert (workers["a"]["restarts"], workers["b"]["phase"]) == (0, "ready")
    assert starts.read_text().splitlines() == ["started"]
    assert_both_versions_are_named(log.read_text())
