import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

ARMS = """
import contextlib
from dataclasses import dataclass, field
from benchmarks.arms.entry import Turn

@dataclass
class Toy:
    roles: dict = field(default_factory=dict)
    facts: dict = field(default_factory=lambda: {"code": {"toy": "here"}})

    def perform(self, step):
        print("what a library prints")
        if step == "broken":
            raise ValueError("no such step")
        return Turn({"time": 1.0}, [step])

@contextlib.contextmanager
def toy(settings):
    try:
        yield Toy(facts={"given": settings["given"]})
    finally:
        print("closed", file=__import__("sys").stderr)
"""


@pytest.fixture
def arm(tmp_path, monkeypatch):
    (tmp_path / "toy_arms.py").write_text(ARMS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run(*steps, entry="toy_arms:toy"):
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.arms.entry", entry, json.dumps({"given": 7})],
            input="".join(f"{step}\n" for step in steps),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_an_arm_answers_each_line_and_closes_at_the_end(arm):
    result = arm("one", "two")

    ready, *answers = map(json.loads, result.stdout.splitlines())
    assert ready["event"] == "ready"
    assert ready["facts"]["given"] == 7
    assert ready["facts"]["code"].keys() == {"coordinator", "stagewire"}
    assert [item["outcome"] for item in answers] == [["one"], ["two"]]
    assert result.returncode == 0
    assert "what a library prints" in result.stderr
    assert "closed" in result.stderr


def test_an_arm_says_what_it_failed_with_and_closes(arm):
    result = arm("one", "broken", "two")

    *_, last = map(json.loads, result.stdout.splitlines())
    assert last == {"event": "failed", "text": "ValueError: no such step"}
    assert result.returncode == 1
    assert "closed" in result.stderr


def test_an_arm_that_is_not_there_is_told(arm):
    result = arm(entry="toy_arms:nothing")

    assert "nothing" in json.loads(result.stdout)["text"]
