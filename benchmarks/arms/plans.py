"""The plans that arms bring up, with the fields that a comparison changes."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.judging.proofs import with_field
from coordinator.artifacts.specification import from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.plan.loading import load_plan

ROOT: Final = Path(__file__).resolve().parents[2]
VOICE_PLAN: Final = ROOT / "plans" / "voice.yaml"
PINNED: Final[Mapping[str, Mapping[str, Any]]] = {  # options of executors are JSON values
    "answer": {
        "context_tokens": 2048,
        "max_tokens": 160,
        "repeat_penalty": 1.0,
        "seed": 1,
        "temperature": 0,
    },
    # Without a ramp: where a text is cut must not depend on the speed of a round.
    "split": {"max_characters": 160},
    # Without noise a sentence has the same samples every time.
    "speak": {"noise_scale": 0.0, "noise_w_scale": 0.0},
}
"""Options that replace those of the plan, so that every round does the same work."""


def voice_plan() -> dict[str, Any]:  # a plan as JSON
    """Returns plans/voice.yaml with the answer pinned and the pipeline `voice` alone."""
    content: dict[str, Any] = yaml.safe_load(VOICE_PLAN.read_text(encoding="utf-8"))
    for stage, options in PINNED.items():
        content["stages"][stage]["options"] = dict(options)
    content["pipelines"] = {"voice": content["pipelines"]["voice"]}
    return content


def fake_plan(
    name: str, stages: Mapping[str, Mapping[str, Any]], pipelines: Mapping[str, Any]
) -> dict[str, Any]:  # a plan as JSON
    """Returns a plan of fake stages, each on a worker of its own that this interpreter runs."""
    fake = {"kind": "fake", "interpreter": {"linux": sys.executable}}
    return {
        "apiVersion": "stagewire/v1",
        "kind": "Plan",
        "metadata": {"name": name},
        "workers": {stage: dict(fake) for stage in stages},
        "stages": {
            stage: {
                "executor": "fake",
                "workers": [stage],
                "memory": {"resident": "1MiB"},
                **fields,
            }
            for stage, fields in stages.items()
        },
        "pipelines": dict(pipelines),
    }


def write_plan(
    folder: Path,
    content: dict[str, Any],  # a plan as JSON
    fields: Mapping[str, Any],
) -> Path:
    """Writes a plan with some fields changed; they are by their paths."""
    for path, value in fields.items():
        with_field(content, path, value)
    file = folder / "plan.yaml"
    # JSON is YAML, without the aliases that a plan must not have.
    file.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return file


def environment_folders(content: Mapping[str, Any]) -> dict[str, Path]:  # a plan as JSON
    """Returns the project folder of each worker that has one."""
    workers = content["workers"].items()
    return {name: ROOT / item["environment"] for name, item in workers if "environment" in item}


def artifact_folders(plan: Path, cache: Path) -> dict[str, Path]:
    """Returns where each artifact of a plan lies once it was pulled."""
    store = ArtifactStore(cache)
    artifacts = load_plan(plan).plan.artifacts
    return {name: store.folder(from_spec(name, spec)) for name, spec in artifacts.items()}
