"""Where the memory of a running plan is: each byte at the right worker, of its processes alone."""

import hashlib
import json
import os
import signal

import numpy as np
import pytest

from stagewire.client import connect
from stagewire.errors import ExitCode
from testkit import plans
from testkit.namespaces import unshare
from testkit.plans import deed

pytestmark = pytest.mark.integration
MIB = 1 << 20
ROOM = {"memory": {"resident": "8MiB", "per_request": "200MiB"}}


def write(program, *script, in_child=False, **fields):
    """Stage `one` on `a`, by script; `two` on `b`; a pipeline for each."""
    stage = plans.stage("a", *script, **ROOM | fields)
    if in_child:
        stage["options"]["in_child"] = True
    content = plans.plan(
        {"one": stage, "two": plans.stage("b", **ROOM)},
        {
            "first": plans.pipeline({"x": "one.x"}, {"y": "one.y"}),
            "second": plans.pipeline({"x": "two.x"}, {"y": "two.y"}),
        },
        artifacts=model(program) if "artifact" in fields else {},
    )
    return plans.write(program.root, content)


def model(program):
    content = os.urandom(24 * MIB)
    (program.root / "weights.bin").write_bytes(content)
    file = {
        "path": "weights.bin",
        "sha256": hashlib.sha256(content).hexdigest(),
        "from": "file:weights.bin",
    }
    return {"weights": {"format": "fake:bytes", "licence": "CC0-1.0", "files": [file]}}


def ask(program):
    with connect(program.state) as client:
        for pipeline in ("first", "second"):
            client.run(pipeline, {"x": np.ones(3, np.float32)})


def occupants(program):
    report = program.json("doctor", "--memory")
    return {item["name"]: item for item in report["occupants"]}, report


def test_every_process_of_a_run_is_shown_with_what_is_reserved_for_it(program):
    up = program.up(write(program))

    result = program.run("doctor", "--memory", "--top", 2)

    assert result.returncode == 0, result.stderr
    for part in ("Processes", "What explains it", "Largest mappings", "coordinator", "[heap]"):
        assert part in result.stdout
    assert "arena: 0 B, for tensors travel inside messages" in result.stdout
    found, report = occupants(program)
    assert list(found) == ["coordinator", "a", "b"]
    assert found["coordinator"]["processes"][0]["pid"] == up.process.pid
    assert 0 < found["coordinator"]["counted_bytes"] < found["coordinator"]["reserved_bytes"]
    for worker in ("a", "b"):
        assert found[worker]["base_bytes"] > MIB
        assert found[worker]["request_bytes"] == 200 * MIB
        assert not found[worker]["is_over"]
        assert len(found[worker]["processes"][0]["mappings"]) == 5
    assert report["plan"] == "test"
    assert report["arena_bytes"] == 0
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_a_leak_is_the_anonymous_remainder_of_its_worker(program):
    up = program.up(write(program, deed("leak", on="start", size_bytes=32 * MIB)))
    before, _ = occupants(program)

    ask(program)

    after, report = occupants(program)
    grown = {
        name: after[name]["remainder_bytes"] - before[name]["remainder_bytes"] for name in "ab"
    }
    assert 32 * MIB <= grown["a"] < 40 * MIB
    assert grown["b"] < 4 * MIB
    assert report["remainder_bytes"] >= 32 * MIB
    assert 0.3 < after["a"]["remainder_share"] < 1
    assert after["a"]["model_bytes"] == 0
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_memory_that_a_load_takes_is_that_of_its_stage_and_no_remainder(program):
    up = program.up(write(program, deed("leak", on="load", size_bytes=32 * MIB)))

    found, _ = occupants(program)

    [share] = found["a"]["stages"]
    assert share["stage"] == "one"
    assert 32 * MIB <= share["anonymous_bytes"] < 36 * MIB
    assert found["a"]["remainder_bytes"] < 8 * MIB
    assert found["a"]["is_over"] is False
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_a_mapped_model_is_model_bytes_of_its_stage_and_no_remainder(program):
    up = program.up(write(program, deed("map", on="start"), artifact="weights"))
    before, report = occupants(program)
    assert report["model_files"][0]["mapped_bytes"] == 0

    ask(program)

    after, report = occupants(program)
    [file] = report["model_files"]
    assert (file["worker"], file["artifact"], file["stages"]) == ("a", "weights", ["one"])
    assert file["size_bytes"] == file["mapped_bytes"] == file["cached_bytes"] == 24 * MIB
    assert after["a"]["model_bytes"] == 24 * MIB
    assert after["b"]["model_bytes"] == 0
    assert after["a"]["remainder_bytes"] - before["a"]["remainder_bytes"] < 4 * MIB
    result = program.run("doctor", "--memory")
    assert "weights.bin  weights   one    a       24 MiB  24 MiB  24 MiB" in result.stdout
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_what_leaks_in_a_child_is_that_of_its_worker(program):
    script = deed("leak", on="start", size_bytes=32 * MIB)
    up = program.up(write(program, script, in_child=True))
    before, _ = occupants(program)
    assert [len(before[name]["processes"]) for name in "ab"] == [2, 1]

    ask(program)

    after, _ = occupants(program)
    assert after["a"]["remainder_bytes"] - before["a"]["remainder_bytes"] >= 32 * MIB
    assert "started by a" in program.run("doctor", "--memory").stdout
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_without_a_coordinator_it_says_so(program):
    result = program.run("doctor", "--memory")
    assert result.returncode == ExitCode.FAULT
    assert "COORDINATOR_UNREACHABLE: " in result.stderr
    assert result.stdout == ""


def test_processes_that_may_not_be_read_are_named_with_what_to_do(program):
    up = program.up(write(program))
    pids = {str(child.pid) for child in up.children()}

    # Who has rights only in a namespace of its own may not look at processes outside of it.
    result = program.run("doctor", "--memory", before=unshare("user"))

    assert result.returncode == ExitCode.REFUSED, result.stderr
    denied = [line for line in result.stdout.splitlines() if "cannot be read" in line]
    assert len(denied) == 3
    assert {line.split()[2] for line in denied[1:]} <= pids
    assert all("permission denied; look as the user who started" in line for line in denied)
    up.send(signal.SIGINT)
    assert up.end() == 0


def test_a_worker_that_was_killed_is_not_shown_and_no_other_process_in_its_place(program):
    up = program.up(write(program, deed("slow", on="load", seconds=3)))
    before, _ = occupants(program)
    victim = before["a"]["processes"][0]["pid"]
    os.kill(victim, signal.SIGKILL)

    result = program.run("doctor", "--memory", "--json")

    shown = {item["name"]: item for item in json.loads(result.stdout)["occupants"]}
    assert victim not in [it["pid"] for item in shown.values() for it in item["processes"]]
    up.send(signal.SIGINT)
    up.end()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--memory", "--plan", "plan.yaml"), "--plan: a running plan is known; leave it out"),
        (("--top", "3"), "--top: goes with --memory alone"),
        (("--state", "x"), "--state: goes with --memory alone"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(program, arguments, says):
    write(program)
    result = program.run("doctor", *arguments)
    assert result.returncode == ExitCode.USAGE
    assert says in result.stderr
