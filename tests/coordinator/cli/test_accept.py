"""Accepting a plan of pretended stages: what is judged, what is missed, what is refused."""

import json
import signal
from pathlib import Path

import pytest

from stagewire.errors import ExitCode
from testkit import plans
from testkit.plans import deed

from .conftest import Terminal, wait_for_children, wait_until_gone

pytestmark = pytest.mark.integration
MIB = 1 << 20
SLOW = deed("slow", seconds=0.6)
TEXT = {"inputs": {"x": plans.TEXT}, "outputs": {"y": plans.TEXT}}
HELLO = {"inputs": {"x": {"text": "hello"}}, "expect": {"y": {"equals": "hello"}}}
UNSET = object()


def write(program, *script, examples=(HELLO,), quick=UNSET, **fields):
    """Pipeline `slow` by script, and `quick` beside it on another worker."""
    slow = plans.pipeline({"x": "one.x"}, {"y": "one.y"}) | {"examples": list(examples)}
    other = plans.pipeline({"x": "two.x"}, {"y": "two.y"})
    other["examples"] = [HELLO] if quick is UNSET else quick
    memory = {"resident": "8MiB", "per_request": "64MiB"}
    content = plans.plan(
        {
            "one": plans.stage("a", *script, **{"memory": memory} | TEXT | fields),
            "two": plans.stage("b", memory=memory, **TEXT),
        },
        {"slow": slow, "quick": other},
    )
    return plans.write(program.root, content)


def accept(program, plan, *arguments):
    """Accepts a plan; returns how that ended, and the record."""
    target = program.root / "record.json"
    result = program.run("accept", "--plan", plan, "--json", target, *arguments)
    record = json.loads(target.read_text()) if target.exists() else None
    return result, record


def assert_nothing_is_left(program):
    assert list(program.temporary.iterdir()) == []
    assert not (program.state / "endpoint.json").exists()
    assert not list(program.root.glob(".record*"))


def test_a_plan_that_keeps_its_promises_is_accepted_with_a_record(program):
    result, record = accept(program, write(program, SLOW))

    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("\naccepted\n")
    for part in ("Planned", "cpu alone  admitted", "Examples", "Memory against budgets", "Checks"):
        assert part in result.stdout
    assert "slow 1: cancelled after" in result.stderr
    assert f"record: {program.root / 'record.json'}" in result.stderr
    assert (record["version"], record["verdict"], record["misses"]) == (1, "accepted", [])
    assert record["masked"]["is_admitted"]
    assert record["full"]["placement"] == {"one": "a/cpu", "two": "b/cpu"}
    assert [(it["pipeline"], it["failure"]) for it in record["outcomes"]] == [
        ("slow", ""),
        ("quick", ""),
    ]
    assert record["outcomes"][0]["outputs"]["y"] == {"items": 1, "elements": 0, "text": "hello"}
    assert record["outcomes"][0]["findings"][0]["is_met"] is True
    assert record["outcomes"][0]["receipt"]["stages"][0]["stage_id"] == "one"
    assert record["outcomes"][0]["seconds"] >= 0.6
    cancel = record["cancellation"]
    assert cancel["was_running"]
    assert (cancel["pipeline"], cancel["still_busy"], cancel["not_returned"]) == ("slow", [], {})
    assert cancel["again"]["findings"][0]["is_met"] is True
    assert {item["owner"] for item in record["budgets"]} == {
        "coordinator",
        *("worker:a", "worker:b", "stage:one", "stage:two"),
    }
    assert all(item["is_met"] for item in record["budgets"])
    assert [item["name"] for item in record["memory"]["occupants"]] == ["coordinator", "a", "b"]
    assert record["left"] == []
    assert_nothing_is_left(program)


def test_the_record_says_where_it_comes_from(program):
    plan = write(program, SLOW)
    _, record = accept(program, plan)

    provenance = record["provenance"]
    assert provenance["plan"] == "test"
    assert provenance["plan_file"] == plan.name
    assert len(provenance["plan_sha256"]) == 64
    assert {"grpcio", "numpy", "protobuf"} <= set(provenance["libraries"])
    assert provenance["machine"]["usable_cores"] >= 1
    assert provenance["machine"]["memory_bytes"] > 1 << 28
    checkout = Path(__file__).resolve().parents[3]
    assert (provenance["commit"] is not None) == (checkout / ".git").exists()
    assert set(record["workers"]) == {"a", "b"}
    assert record["workers"]["a"]["libraries"]["fake"] == "fake"
    assert record["state"]["stages"][0]["verdict"] == "full"


def test_an_answer_that_is_not_the_expected_one_is_missed_and_named(program):
    wrong = HELLO | {"expect": {"y": {"equals": "goodbye", "min_items": 2}}}
    result, record = accept(program, write(program, SLOW, examples=[HELLO, wrong]))

    assert result.returncode == ExitCode.MISSED
    assert "missed: " in result.stdout
    assert "  slow 2: y: min_items 2, found 1\n" in result.stdout
    assert "  slow 2: y: equals goodbye, found hello\n" in result.stdout
    assert record["verdict"] == "missed"
    assert "slow 2: y: equals goodbye, found hello" in record["misses"]
    assert record["left"] == []
    assert_nothing_is_left(program)


def test_a_request_that_fails_is_missed_and_the_others_still_run(program):
    result, record = accept(program, write(program, deed("refuse")), "--yes")

    assert result.returncode == ExitCode.MISSED
    slow, quick = record["outcomes"]
    assert slow["failure"].startswith("STAGE_FAULT: ")
    assert slow["receipt"] is None
    assert quick["findings"][0]["is_met"]
    assert any("slow 1: STAGE_FAULT" in miss for miss in record["misses"])


def test_a_pipeline_without_an_example_is_missed(program):
    result, record = accept(program, write(program, SLOW, quick=[]))

    assert result.returncode == ExitCode.MISSED
    assert record["without_examples"] == ["quick"]
    assert record["misses"] == [
        "quick: it has no example; write one under pipelines.quick.examples"
    ]


def test_only_the_pipelines_that_are_named_are_run(program):
    result, record = accept(program, write(program, SLOW, quick=[]), "--pipeline", "slow")

    assert result.returncode == 0, result.stdout
    assert record["full"]["placement"] == {"one": "a/cpu"}


def test_a_request_too_quick_to_be_cancelled_is_missed(program):
    result, record = accept(program, write(program))

    cancel = record["cancellation"]
    if cancel["was_running"]:
        # A busy machine may be slow enough.
        assert result.returncode == 0
    else:
        assert result.returncode == ExitCode.MISSED
        assert "it ended before it could be cancelled" in result.stdout


def test_a_budget_below_what_is_measured_is_missed(program):
    plan = write(
        program,
        SLOW,
        deed("leak", on="load", size_bytes=32 * MIB),
        memory={"resident": "4MiB", "load_peak": "8MiB"},
    )
    result, record = accept(program, plan)

    assert result.returncode == ExitCode.MISSED
    [stage] = [item for item in record["budgets"] if item["owner"] == "stage:one"]
    assert not stage["is_met"]
    assert stage["measured_bytes"] >= 32 * MIB
    assert "stage:one: resident budget 4.0 MiB, measured 3" in result.stdout
    assert "raise it by " in result.stdout


def test_memory_that_a_cancelled_request_keeps_is_missed(program):
    script = (deed("leak", on="start", size_bytes=24 * MIB), SLOW)
    memory = {"resident": "8MiB", "per_request": "300MiB"}
    result, record = accept(program, write(program, *script, memory=memory))

    assert result.returncode == ExitCode.MISSED
    assert list(record["cancellation"]["not_returned"]) == ["a"]
    assert "cancel of slow 1: worker a kept 2" in result.stdout


def test_a_worker_that_is_lost_is_missed(program):
    result, record = accept(program, write(program, deed("crash")))

    assert result.returncode == ExitCode.MISSED
    assert record["outcomes"][0]["failure"].startswith("WORKER_LOST: ")
    assert any("worker a was lost" in miss for miss in record["misses"])
    assert record["left"] == []


@pytest.mark.parametrize(
    ("example", "reason", "says"),
    [
        ({"inputs": {"x": {"file": "no/such.txt"}}}, "MEDIA_INVALID", "such.txt"),
        ({"inputs": {}}, "FIELD_INVALID", "also takes x (a stream of utf8); add them to"),
        ({"inputs": {"x": {"number": 3}}}, "FIELD_INVALID", "'3' is no value for input 'x'"),
    ],
)
def test_an_example_that_cannot_be_sent_is_refused_before_anything_starts(
    program, example, reason, says
):
    result, record = accept(program, write(program, examples=[example]))

    assert result.returncode == ExitCode.REFUSED
    assert f"{reason}: " in result.stderr
    assert says in result.stderr
    assert "plan.yaml:" in result.stderr
    assert "pipelines.slow.examples[0]: " in result.stderr
    assert "starting" not in result.stderr
    assert record["verdict"] == "refused"
    assert says in record["failure"]


def test_a_file_beside_the_plan_comes_before_one_of_the_checkout(program):
    (program.root / "README.md").write_text("mine")
    example = {"inputs": {"x": {"file": "README.md"}}, "expect": {"y": {"equals": "mine"}}}
    result, _ = accept(program, write(program, SLOW, examples=[example]))

    assert result.returncode == 0, result.stdout


def test_a_plan_that_does_not_fit_is_refused_with_the_sum_and_a_record(program):
    result, record = accept(program, write(program), "--ram", "100MiB")

    assert result.returncode == ExitCode.REFUSED
    assert "CONSTRAINT_EXCEEDED: " in result.stderr
    assert record["verdict"] == "refused"
    assert not record["masked"]["is_admitted"]
    assert (record["full"], record["left"]) == (None, None)
    assert_nothing_is_left(program)


def test_a_record_that_cannot_be_written_is_refused_first(program):
    plan = write(program)
    result = program.run("accept", "--plan", plan, "--json", program.root / "no" / "record.json")

    assert result.returncode == ExitCode.REFUSED
    assert "PATH_FORBIDDEN: " in result.stderr
    assert "starting" not in result.stderr


def test_ctrl_c_ends_it_and_leaves_nothing(program):
    target = program.root / "record.json"
    plan = write(program, deed("slow", seconds=600))
    started = program.start("accept", "--plan", plan, "--json", target)
    started.wait_for("worker b: ready")
    workers = wait_for_children(started, 2)

    started.send(signal.SIGINT)

    assert started.end() == ExitCode.INTERRUPTED
    wait_until_gone(workers)
    assert not target.exists()
    assert_nothing_is_left(program)


def test_on_a_terminal_it_fits_the_width(program):
    terminal = Terminal(program, "accept", "--plan", write(program, SLOW), columns=80)

    assert terminal.end() == 0
    assert "accepted" in terminal.output
