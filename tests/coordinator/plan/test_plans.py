import hashlib
import re
from pathlib import Path

import pytest

from coordinator.plan.graph import build_graph
from coordinator.plan.loading import load_plan
from coordinator.plan.ports import PortRef

pytestmark = pytest.mark.unit

PLANS = Path(__file__).parents[3] / "plans"


def test_there_are_plans():
    found = {path.name for path in PLANS.glob("*.yaml")}
    assert {"voice.yaml", "page.yaml", "label.yaml"} <= found


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_plan_loads(path):
    loaded = load_plan(path)

    assert all(build_graph(loaded.plan, name).stages for name in loaded.plan.pipelines)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_plan_names_its_schema_licences_and_sizes(path):
    artifacts = load_plan(path).plan.artifacts.values()

    assert "$schema=./plan.schema.json" in path.read_text(encoding="utf-8").splitlines()[0]
    assert all(artifact.licence and artifact.size_bytes for artifact in artifacts)
    sources = [
        source for artifact in artifacts for file in artifact.files for source in file.sources
    ]
    assert all(re.fullmatch("pypi:.*@sha256:.*|file:models/.*", str(it)) for it in sources)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.name)
def test_the_models_that_lie_beside_a_plan_are_those_it_names(path):
    files = [file for it in load_plan(path).plan.artifacts.values() for file in it.files]
    ours = [(file, str(source)) for file in files for source in file.sources]

    for file, source in ours:
        if source.startswith("file:"):
            content = (PLANS / source.removeprefix("file:")).read_bytes()
            assert len(content) == file.size
            assert hashlib.sha256(content).hexdigest() == file.sha256


def test_equal_artifacts_of_two_plans_are_the_same():
    """One download for both: the cache knows an artifact by what it is."""
    page, label = (load_plan(PLANS / name).plan for name in ("page.yaml", "label.yaml"))

    assert {name: page.artifacts[name] for name in label.artifacts} == label.artifacts


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


def test_the_page_plan_goes_from_an_image_to_lines():
    graph = build_graph(load_plan(PLANS / "page.yaml").plan, "read")

    assert graph.stages == ("scale", "find_lines", "cut_lines", "recognise", "spell")
    assert graph.inputs == {"image": PortRef("scale", "image")}
    assert str(graph.output_types[graph.outputs["lines"]]) == "stream of utf8"


def test_one_image_goes_two_ways_that_meet_in_one_prompt():
    plan = load_plan(PLANS / "page.yaml").plan
    graph = build_graph(plan, "both")

    takers = {
        target.stage
        for source, target in plan.pipelines["both"].edges
        if source == PortRef("scale", "image")
    }
    assert takers == {"cut_lines", "centre"}
    assert graph.stages[-2:] == ("ask_for_caption", "answer")
    assert set(graph.outputs) == {"lines", "confidences", "label", "probability", "answer"}


def test_a_photo_is_labelled_without_the_language_model():
    plan = load_plan(PLANS / "label.yaml").plan

    assert build_graph(plan, "classify").stages == ("centre", "classify", "name")
    assert build_graph(plan, "label").stages[-1] == "answer"
