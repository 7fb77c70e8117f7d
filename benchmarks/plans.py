"""The plans that benchmarks bring up."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from coordinator.artifacts.specification import from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.plan.loading import load_plan

_ROOT: Final = Path(__file__).resolve().parents[1]
VOICE_PLAN: Final = _ROOT / "plans" / "voice.yaml"
PINNED: Final[Mapping[str, Mapping[str, Any]]] = {  # options of executors are JSON values
    "answer": {
        "context_tokens": 2048,
        "max_tokens": 160,
        "repeat_penalty": 1.0,
        "seed": 1,
        "temperature": 0,
    },
    # Without noise a sentence has the same samples every time.
    "speak": {"noise_scale": 0.0, "noise_w_scale": 0.0},
}
"""Options that replace those of the plan, so that every round does the same work."""


@dataclass(frozen=True, slots=True)
class VoicePlan:
    """The bench form of plans/voice.yaml."""

    path: Path
    options: Mapping[str, Mapping[str, Any]]
    """Options of each stage, for a program that does the same without the plan."""
    environments: Mapping[str, Path]
    """Project folder of each worker."""
    stages_on: Mapping[str, tuple[str, ...]]
    """Stages of each worker."""


def write_voice_plan(folder: Path) -> VoicePlan:
    """Writes the plan with the answer pinned and the pipeline `voice` alone."""
    content: Any = yaml.safe_load(VOICE_PLAN.read_text(encoding="utf-8"))  # a YAML document
    for stage, options in PINNED.items():
        content["stages"][stage]["options"] = dict(options)
    content["pipelines"] = {"voice": content["pipelines"]["voice"]}
    path = folder / "voice.yaml"
    # JSON is YAML, without the aliases that a plan must not have.
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    stages = content["stages"]
    return VoicePlan(
        path,
        {name: stage.get("options", {}) for name, stage in stages.items()},
        {name: _ROOT / worker["environment"] for name, worker in content["workers"].items()},
        {
            worker: tuple(name for name, stage in stages.items() if worker in stage["workers"])
            for worker in content["workers"]
        },
    )


def artifact_folders(plan: Path, cache: Path) -> dict[str, Path]:
    """Returns where each artifact of a plan lies once it was pulled."""
    store = ArtifactStore(cache)
    artifacts = load_plan(plan).plan.artifacts
    return {name: store.folder(from_spec(name, spec)) for name, spec in artifacts.items()}


def write_hop_plan(folder: Path) -> Path:
    """Writes a plan of two workers that stamp items: pipeline `near` stays in one of them."""
    port = {"type": "int64", "shape": ["words<=1024"], "stream": True}
    stages = {
        name: {
            "executor": "fake",
            "workers": [name],
            "options": {"stamp": True},
            "inputs": {"item": port},
            "outputs": {"item": port},
            "memory": {"resident": "1MiB"},
        }
        for name in ("first", "second")
    }
    content = {
        "apiVersion": "stagewire/v1",
        "kind": "Plan",
        "metadata": {"name": "hop"},
        "workers": {
            name: {"kind": "fake", "interpreter": {"linux": sys.executable}} for name in stages
        },
        "stages": stages,
        "pipelines": {
            "far": {
                "inputs": {"item": "first.item"},
                "edges": [["first.item", "second.item"]],
                "outputs": {"item": "second.item"},
            },
            "near": {
                "inputs": {"item": "first.item"},
                "edges": [],
                "outputs": {"item": "first.item"},
            },
        },
    }
    path = folder / "hop.yaml"
    # JSON is YAML, without the aliases that a plan must not have.
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path
