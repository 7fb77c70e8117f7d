"""A small plan to break, and how it is refused."""

from pathlib import Path

import pytest

from coordinator.plan.loading import parse_plan
from stagewire.errors import PlanInvalidError

SHA256 = "ab" * 32

PLAN = f"""\
apiVersion: stagewire/v1
kind: Plan
metadata: {{name: small}}
artifacts:
  tiny:
    format: onnx:fp32
    licence: MIT
    files:
      - path: tiny.onnx
        sha256: "{SHA256}"
        from: file:models/tiny.onnx
workers:
  cpu:
    kind: cpu
    environment: workers/cpu
stages:
  hear:
    executor: onnx
    artifact: tiny
    workers: [cpu]
    inputs:
      audio: {{type: float32, shape: ["samples<=100"]}}
    outputs:
      text: {{type: utf8, stream: true}}
  answer:
    executor: function
    function: upper
    workers: [cpu]
    inputs:
      prompt: {{type: utf8, stream: true}}
    outputs:
      text: {{type: utf8, stream: true}}
pipelines:
  main:
    inputs: {{audio: hear.audio}}
    edges:
      - [hear.text, answer.prompt]
    outputs: {{answer: answer.text}}
"""


class Small:
    """The small plan with some of its text replaced."""

    text = PLAN

    def but(self, *changes):
        text = PLAN
        for old, new in changes:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the plan"
            text = text.replace(old, new)
        return text

    def load(self, *changes):
        return parse_plan(self.but(*changes).encode(), Path("small.yaml"))

    def problems(self, *changes):
        return refused(self.but(*changes))


def refused(text):
    """Returns the lines of the refusal."""
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(PlanInvalidError) as refusal:
        parse_plan(content, Path("small.yaml"))
    lines = str(refusal.value).splitlines()
    assert refusal.value.facts["problem_count"] == str(len(lines))
    return lines


@pytest.fixture
def small():
    return Small()


@pytest.fixture(name="refused")
def _refused():
    return refused
