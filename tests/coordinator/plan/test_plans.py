import re
from pathlib import Path

import pytest

from coordinator.plan.graph import build_graph
from coordinator.plan.loading import load_plan
from coordinator.plan.ports import PortRef

pytestmark = pytest.mark.unit

PLANS = Path(__file__).parents[3] / "plans"


def test_there_are_plans():
    assert PLANS / "voice.yaml" in list(PLANS.glob("*.yaml"))


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_plan_loads(path):
    loaded = load_plan(path)

    assert all(build_graph(loaded.plan, name).stages for name in loaded.plan.pipelines)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_plan_names_its_schema_licences_and_sizes(path):
    artifacts = load_plan(path).plan.artifacts.values()

    assert "$schema=./plan.schema.json" in path.read_text(encoding="utf-8").splitlines()[0]
    assert all(artifact.licence and artifact.size_bytes for artifact in artifacts)
    assert all(
        re.fullmatch("pypi:.*@sha256:.*", str(source))
        for artifact in artifacts
        for file in artifact.files
        for source in file.sources
    )


def test_the_voice_plan_goes_from_sound_to_sound():
    graph = build_graph(load_plan(PLANS / "voice.yaml").plan, "voice")

    assert graph.stages == ("resample", "listen", "hear", "answer", "split", "speak")
    assert graph.inputs == {
        "audio": PortRef("resample", "audio"),
        "rate": PortRef("resample", "rate"),
    }
    assert set(graph.outputs) == {"reply", "answer", "heard"}
    assert str(graph.output_types[graph.outputs["reply"]]) == "stream of int16[samples<=1323000]"


def test_the_text_pipeline_needs_no_speech_worker():
    plan = load_plan(PLANS / "voice.yaml").plan
    graph = build_graph(plan, "text")

    assert set(graph.outputs) == {"answer", "heard"}
    assert all(plan.stages[stage].workers == ("cpu",) for stage in graph.stages)


def test_the_speech_worker_hosts_nothing_but_speech():
    plan = load_plan(PLANS / "voice.yaml").plan

    hosted = [name for name, stage in plan.stages.items() if "speech" in stage.workers]
    assert hosted == ["speak"]
