"""Commands that read: tables for people, one JSON document for programs, and what breaks them."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from coordinator.plan.json_schema import plan_json_schema
from stagewire.errors import ExitCode

from .conftest import Terminal

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
VOICE = ROOT / "plans" / "voice.yaml"


# --- plan ---


def test_a_dry_run_shows_places_transports_memory_and_what_is_left_to_prove(program):
    result = program.run("plan", "--plan", program.plan())
    assert result.returncode == 0, result.stderr
    for part in ("one    a       cpu", "the only device of its workers", "inline or chunked"):
        assert part in result.stdout
    assert result.stdout.startswith("fake fits: it takes "), "the sum comes first"
    assert "admitted, subject to proof" in result.stdout
    assert "its example runs" in result.stdout
    assert not program.state.exists(), "a dry run starts nothing and writes nothing"


def test_a_dry_run_is_one_json_document_whose_sum_is_right(program):
    design = program.json("plan", "--plan", program.plan())["design"]
    assert [stage["stage"] for stage in design["stages"]] == ["one", "two", "echo"]
    assert {edge["transport"] for edge in design["edges"]} == {"inline or chunked"}
    total = sum(claim["size_bytes"] for claim in design["claims"]) + design["loads_bytes"]
    assert {limit["reserved_bytes"] for limit in design["limits"]} == {total}
    assert [proof["stage"] for proof in design["proofs"]] == ["one", "two", "echo"]


def test_the_voice_plan_says_how_each_edge_travels(program):
    edges = program.json("plan", "--plan", VOICE)["design"]["edges"]
    transports = {(edge["source"], edge["target"]): edge["transport"] for edge in edges}
    assert transports["rate", "resample.rate"] == "inline"
    assert transports["resample.audio", "listen.audio"] == "inline or chunked"


def test_one_pipeline_leaves_the_stages_of_the_others_out(program):
    design = program.json("plan", "--plan", program.plan(), "--pipeline", "words")["design"]
    assert [stage["stage"] for stage in design["stages"]] == ["echo"]
    unknown = program.run("plan", "--plan", program.plan(), "--pipeline", "none")
    assert unknown.returncode == ExitCode.REFUSED
    assert "PIPELINE_UNKNOWN: " in unknown.stderr


def test_a_plan_that_does_not_fit_is_refused_with_its_arithmetic(program):
    result = program.run("plan", "--plan", VOICE, "--ram", "900MiB")
    assert result.returncode == ExitCode.REFUSED
    assert result.stdout == ""
    assert "CONSTRAINT_EXCEEDED: it needs " in result.stderr
    assert "which allows 900.0 MiB" in result.stderr
    assert "stage:hear" in result.stderr
    assert "smallest change that fits: raise --ram to " in result.stderr


def test_what_is_refused_dry_is_refused_by_up_as_well(program):
    result = program.run("up", "--plan", VOICE, "--ram", "900MiB", "--yes")
    assert result.returncode == ExitCode.REFUSED
    assert "CONSTRAINT_EXCEEDED: " in result.stderr
    assert not program.state.exists()


def test_a_plan_that_breaks_rules_is_refused_with_every_line(program):
    path = program.root / "broken.yaml"
    path.write_text(program.plan().read_text().replace('"kind": "Plan"', '"kind": "Plam"'))
    result = program.run("plan", "--plan", path, "--json")
    assert result.returncode == ExitCode.REFUSED
    assert json.loads(result.stdout)["refusal"]["reason"] == "PLAN_INVALID"
    assert f"PLAN_INVALID: {path}:" in result.stderr


@pytest.mark.parametrize(
    "words",
    [["plan"], ["up"], ["doctor"], ["devices"], *(["artifacts", w] for w in ("pull", "list"))],
)
@pytest.mark.parametrize(
    ("name", "says"), [("none.yaml", "none.yaml does not exist"), ("folder", "is a folder")]
)
def test_a_plan_that_is_no_file_is_wrong_usage(program, words, name, says):
    (program.root / "folder").mkdir()
    result = program.run(*words, "--plan", name)
    assert result.returncode == ExitCode.USAGE
    assert says in result.stderr
    assert ":1:1" not in result.stderr


def test_a_refused_plan_is_one_json_document_with_what_to_do(program):
    result = program.run("plan", "--plan", VOICE, "--ram", "900MiB", "--json")
    assert result.returncode == ExitCode.REFUSED
    document = json.loads(result.stdout)
    refusal = document["refusal"]
    assert document["verdict"] == "refused"
    assert refusal["reason"] == "CONSTRAINT_EXCEEDED"
    assert refusal["message"] in result.stderr
    assert refusal["facts"]["limit_bytes"] == str(900 << 20)
    assert len(refusal["remedies"]) == 2
    assert all(remedy in result.stderr for remedy in refusal["remedies"])


@pytest.mark.parametrize("ram", ["900MiB", "1300MiB", "100MiB"])
@pytest.mark.parametrize("words", [["plan"], ["up", "--yes"]])
def test_what_does_not_fit_names_exactly_the_pipelines_that_would_alone(program, words, ram):
    refused = program.run(*words, "--plan", VOICE, "--ram", ram)
    assert refused.returncode == ExitCode.REFUSED
    named = set(re.findall(r"`--pipeline (\w+)`", refused.stderr))
    fitting = {
        name
        for name in ("voice", "text", "dictate", "chat", "say")
        if program.run("plan", "--plan", VOICE, "--ram", ram, "--pipeline", name).returncode == 0
    }
    assert named == fitting


@pytest.mark.parametrize("words", [["plan"], ["up"]])
def test_a_pipeline_that_the_plan_has_not_is_named_beside_those_that_it_has(program, words):
    result = program.run(*words, "--plan", program.plan(), "--pipeline", "word")
    assert result.returncode == ExitCode.REFUSED
    said = "the plan has no pipeline 'word'; it has numbers, words; did you mean 'words'?"
    assert f"PIPELINE_UNKNOWN: {said}" in result.stderr


def test_the_schema_of_plans_is_printed(program):
    result = program.run("plan", "--schema")
    assert json.loads(result.stdout) == plan_json_schema()


# --- status and devices ---


def test_status_shows_what_runs_where(program):
    program.up(program.plan())
    shown = program.run("status").stdout
    assert shown.startswith("fake: ready\n")
    for part in ("one    a       cpu", "numbers   yes", "machine:physical"):
        assert part in shown

    state = program.json("status")
    assert (state["plan_name"], state["phase"]) == ("fake", "ready")
    assert {stage["verdict"] for stage in state["stages"]} == {"full"}
    assert all(worker["reserved_bytes"] > 0 for worker in state["workers"])
    assert state["ledger"]["constraints"]


def test_status_without_a_coordinator_fails(program):
    result = program.run("status", "--json")
    assert result.returncode == ExitCode.FAULT
    assert result.stdout == ""
    assert result.stderr.startswith("COORDINATOR_UNREACHABLE: ")


def test_status_watches_until_the_coordinator_stops(program):
    program.up(program.plan())
    watch = program.start("status", "--watch", "--json")
    assert json.loads(watch.wait_for('"phase"'))["phase"] == "ready"
    assert program.run("down").returncode == 0
    watch.end()
    assert '"phase": "draining"' in watch.output


def test_devices_keeps_its_three_facts_apart(program):
    (row,) = program.json("devices")["devices"]
    assert row["device"] == "cpu"
    assert row["present"]["answer"] == "yes"
    assert row["reachable"]["answer"] == row["runnable"]["answer"] == "unknown"

    (row,) = program.json("devices", "--plan", VOICE)["devices"]
    assert row["reachable"] == {"answer": "yes", "detail": "by cpu, speech"}

    program.up(program.plan())
    (row,) = program.json("devices")["devices"]
    assert row["runnable"]["answer"] == "yes"
    shown = program.run("devices").stdout
    assert "yes: a (fake" in shown
    assert "onnx:fp32" not in shown, "formats are for --json"
    assert "fake" in {item["executor"] for item in row["capabilities"]}


# --- doctor ---


def test_doctor_checks_the_machine(program):
    report = program.json("doctor")
    assert report["is_well"] is True
    names = [check["name"] for check in report["checks"]]
    assert names == ["python", "cores", "memory", "cgroup", "disk", "uv", "shm", "loopback"]
    assert "uv" in program.run("doctor").stdout


def test_doctor_ends_with_2_when_a_check_fails(program):
    path = program.root / "broken.yaml"
    path.write_text("{}")
    result = program.run("doctor", "--plan", path)
    assert result.returncode == ExitCode.REFUSED
    assert "PLAN_INVALID" in result.stdout
    problems = [line for line in program.run("plan", "--plan", path).stderr.splitlines()[1:-1]]
    assert len(problems) > 3
    assert all(problem in result.stdout for problem in problems)


@pytest.mark.parametrize("words", [["demo", "--fake"], ["up", "--fake", "--plan", VOICE]])
def test_without_loopback_everything_says_the_same_remedy(program, words):
    result = program.run_without_network(*words)
    doctor = program.run_without_network("doctor")
    assert (result.returncode, doctor.returncode) == (ExitCode.REFUSED, ExitCode.REFUSED)
    for shown in (result.stderr, doctor.stdout):
        assert "loopback is down" in shown
        assert "bring it up with `ip link set lo up`" in shown
    assert "starting" not in result.stderr


def test_doctor_checks_a_plan(program):
    checks = program.json("doctor", "--plan", program.plan())["checks"]
    assert checks[-1] == {"name": "plan", "state": "ok", "found": "fake fits", "remedy": ""}


# --- artifacts ---


@pytest.fixture
def model_plan(program):
    """A plan with a model that lies beside it."""
    content = b"not much of a model" * 1000
    (program.root / "model.bin").write_bytes(content)
    plan = json.loads(program.plan().read_text())
    plan["artifacts"] = {
        "model": {
            "format": "fake:bytes",
            "licence": "CC0-1.0",
            "files": [
                {
                    "path": "model.bin",
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "size": len(content),
                    "from": "file:model.bin",
                }
            ],
        }
    }
    plan["stages"]["one"]["artifact"] = "model"
    path = program.root / "model.yaml"
    path.write_text(json.dumps(plan, indent=1))
    return path


def test_artifacts_are_pulled_listed_and_verified(program, model_plan):
    (row,) = program.json("artifacts", "list", "--plan", model_plan)["artifacts"]
    assert (row["artifact"], row["state"], row["licence"]) == ("model", "missing", "CC0-1.0")

    pull = program.run("artifacts", "pull", "--plan", model_plan)

    assert pull.returncode == 0, pull.stderr
    assert "CC0-1.0" in pull.stderr
    assert pull.stdout == "model: whole\n"
    (announced,) = re.findall(r"^model model +(\S+ KiB)", pull.stderr, re.MULTILINE)
    assert f"model model: fetched {announced} in " in pull.stderr
    (row,) = program.json("artifacts", "list", "--plan", model_plan)["artifacts"]
    assert row["state"] == "present"
    (cached,) = program.json("artifacts", "list")["artifacts"]
    assert cached["size_bytes"] == row["size_bytes"] == 19_000
    verify = program.run("artifacts", "verify", "--plan", model_plan)
    assert (verify.returncode, verify.stdout) == (0, "model: whole\n")


def test_one_flipped_bit_is_found_and_mended(program, model_plan):
    assert program.run("artifacts", "pull", "--plan", model_plan).returncode == 0
    stored = max((program.root / "cache").rglob("*"), key=lambda path: path.stat().st_size)
    content = bytearray(stored.read_bytes())
    content[5] ^= 1
    stored.chmod(0o600)
    stored.write_bytes(content)

    verify = program.run("artifacts", "verify", "--plan", model_plan)
    assert verify.returncode == ExitCode.REFUSED
    assert "'model.bin' of artifact 'model' has 19000 bytes of sha256" in verify.stdout
    up = program.run("up", "--plan", model_plan)
    assert up.returncode == ExitCode.REFUSED
    assert "ARTIFACT_CORRUPT: " in up.stderr

    assert program.run("artifacts", "pull", "--plan", model_plan).returncode == 0
    assert program.run("artifacts", "verify", "--plan", model_plan).returncode == 0


def test_what_is_missing_is_verified_as_missing(program, model_plan):
    verify = program.run("artifacts", "verify", "--plan", model_plan)
    assert verify.returncode == ExitCode.REFUSED
    assert "is not in the cache" in verify.stdout


def test_a_source_that_is_gone_is_a_fault(program, model_plan):
    (program.root / "model.bin").unlink()
    result = program.run("artifacts", "pull", "--plan", model_plan, "--yes")
    assert result.returncode == ExitCode.FAULT
    assert "ARTIFACT_UNAVAILABLE: " in result.stderr


def test_a_person_may_say_no_to_a_download(program, model_plan):
    terminal = Terminal(program, "artifacts", "pull", "--plan", model_plan)
    terminal.wait_for("Download it?")
    terminal.type("n\n")
    assert terminal.end() == ExitCode.REFUSED
    assert "it was not downloaded, as you asked" in terminal.output
    assert program.json("artifacts", "list")["artifacts"] == []


def test_a_person_may_say_yes_to_a_download(program, model_plan):
    terminal = Terminal(program, "artifacts", "pull", "--plan", model_plan)
    terminal.wait_for("Download it?")
    terminal.type("\n")
    assert terminal.end() == 0
    assert "model: whole" in terminal.output


# --- colours ---


def test_colours_are_for_terminals_that_want_them(program):
    coloured = Terminal(program, "plan", "--plan", program.plan())
    assert coloured.end() == 0
    assert "\x1b[" in coloured.output
    plain = Terminal(program, "plan", "--plan", program.plan(), NO_COLOR="1")
    assert plain.end() == 0
    assert "\x1b[" not in plain.output
    assert "\x1b" not in program.run("plan", "--plan", program.plan()).stdout
