import hashlib
import os
from pathlib import Path

import pytest

from coordinator.plan.loading import load_plan, parse_plan
from coordinator.plan.problems import suggest
from stagewire.errors import ExitCode, PlanInvalidError
from stagewire.limits import PLAN_BYTES

pytestmark = pytest.mark.unit


def test_a_plan_is_read_with_its_defaults(small):
    loaded = small.load()

    hear = loaded.plan.stages["hear"]
    assert loaded.path == Path("small.yaml")
    assert loaded.digest == hashlib.sha256(small.text.encode()).hexdigest()
    assert (hear.limits.concurrency, hear.limits.queue) == (1, 8)
    assert (hear.limits.deadline, hear.limits.hang_timeout) == (30.0, 60.0)
    assert (hear.threads, hear.keep, hear.memory.resident) == (1, "resident", 0)
    assert loaded.plan.policies.os_reserve == 2 << 30
    assert loaded.plan.workers["cpu"].memory.resident == 90 << 20
    assert [stage.workers for stage in loaded.plan.stages.values()] == [("cpu",), ("cpu",)]


def test_a_later_refusal_can_name_the_line_of_a_field(small):
    loaded = small.load()

    assert loaded.where(("stages", "hear", "workers")) == "small.yaml:20:5"
    assert loaded.where(("stages", "hear", "memory", "resident")) == "small.yaml:17:3"


def test_a_file_is_read(tmp_path, small):
    path = tmp_path / "plan.yaml"
    path.write_text(small.text)

    loaded = load_plan(path)

    assert loaded.plan.metadata.name == "small"
    assert loaded.folder == tmp_path


def test_an_invalid_plan_is_a_refusal_that_counts_its_problems(tmp_path, small):
    path = tmp_path / "plan.yaml"
    path.write_text(small.but(("apiVersion: stagewire/v1\n", "")))

    with pytest.raises(PlanInvalidError) as refusal:
        load_plan(path)

    assert str(refusal.value) == f"{path}:1:1: apiVersion: is missing; add it"
    assert refusal.value.facts == {"problem_count": "1"}
    assert refusal.value.exit_code is ExitCode.REFUSED


def test_what_cannot_be_opened_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in [
        (tmp_path / "missing.yaml", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "pipe", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "nul\x00", "not a path"),
    ]:
        with pytest.raises(PlanInvalidError) as refusal:
            load_plan(path)
        assert str(refusal.value) == (
            f"{path}:1:1: plan: cannot be read: {what}; name a file that holds a plan"
        )


def test_a_huge_file_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(PlanInvalidError, match=f"has more than {PLAN_BYTES} bytes"):
        load_plan(path)


def test_nothing_that_a_plan_names_is_opened(tmp_path, small, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "models")
    path = tmp_path / "plan.yaml"
    path.write_text(
        small.but(
            ("environment: workers/cpu", "interpreter: {linux: /dev/zero}"),
            ("file:models/tiny.onnx", "file:models"),
        )
    )

    assert load_plan(path).plan.workers["cpu"].interpreter.linux == "/dev/zero"


def test_several_problems_are_told_at_once_in_the_order_of_the_file(small):
    assert small.problems(
        ("kind: Plan", "kind: plan"),
        ("licence: MIT", "licence: MIT\n    license: MIT"),
        ("workers: [cpu]\n    inputs:\n      audio", "workers: [gpu]\n    inputs:\n      audio"),
        ("function: upper", "function: upper\n    thread: 2"),
        ("[hear.text, answer.prompt]", "[hear.txt, answer.prompt]"),
        ("outputs: {answer: answer.text}", "outputs: {answer: answer.text}\n  main: {}"),
    ) == [
        "small.yaml:2:7: kind: 'plan' is not allowed here; did you mean \"Plan\"?",
        'small.yaml:8:5: artifacts.tiny.license: is not a known field; did you mean "licence"?',
        'small.yaml:21:15: stages.hear.workers[0]: names the worker "gpu", which the plan does not'
        ' describe; did you mean "cpu"?',
        'small.yaml:29:5: stages.answer.thread: is not a known field; did you mean "threads"?',
        'small.yaml:39:10: pipelines.main.edges[0][0]: names the output "txt", which stage'
        " hear does"
        ' not have; did you mean "text"?',
        "small.yaml:41:3: pipelines.main: stands twice, first at 36:3; remove one",
    ]


def test_a_broken_entry_does_not_make_others_look_broken(small):
    assert small.problems(("executor: onnx", "executor: 7")) == [
        "small.yaml:18:15: stages.hear.executor: must be text, not 7; put it in quotes"
    ]
    assert small.problems(("    licence: MIT\n", "")) == [
        "small.yaml:5:3: artifacts.tiny.licence: is missing; add it"
    ]
    assert small.problems(
        ("workers:\n  cpu:\n    kind: cpu\n    environment: workers/cpu\n", "")
    ) == ["small.yaml:1:1: workers: is missing; add it"]


def test_what_could_not_be_read_is_told_once(small):
    assert small.problems(
        ("executor: onnx", "executor: &e onnx"), ("function: upper", "function: *e")
    ) == [
        "small.yaml:18:15: stages.hear.executor: has an anchor (&e); write the value itself",
        "small.yaml:27:15: stages.answer.function: is an alias (*e); write the value itself",
    ]


def test_no_more_than_a_hundred_problems_are_shown(small):
    extra = "".join(f"    wrong{number}: 1\n" for number in range(150))

    with pytest.raises(PlanInvalidError) as refusal:
        parse_plan(
            small.but(("    licence: MIT\n", f"    licence: MIT\n{extra}")).encode(), Path("p")
        )

    lines = str(refusal.value).splitlines()
    assert refusal.value.facts["problem_count"] == "150"
    assert len(lines) == 101
    assert lines[-1] == "p: 50 more problems are not shown"


def test_a_message_never_carries_long_or_raw_text_of_the_file(small):
    (line,) = small.problems(("executor: onnx", f'executor: "\\u001b[31m{"x" * 5000}"'))

    assert "\x1b" not in line
    assert len(line) < 300


@pytest.mark.parametrize("text", ["[]", "plan", "1", "~", "[apiVersion]"])
def test_a_file_that_is_no_mapping_is_refused(refused, text):
    (line,) = refused(text)

    assert line.startswith("small.yaml:1:1: plan: must be a mapping, not ")


def test_a_suggestion_is_the_closest_name_or_all_names():
    assert suggest("haer", ["hear", "answer"]) == 'did you mean "hear"?'
    assert suggest("zzz", ["hear", "answer"]) == "known are answer, hear"
    assert suggest("zzz", []) == "none is declared"
