"""Real models for the tests of the workers: those of the voice plan, from the product's own cache.

As a program it fills a folder: `python tests/workers/model_files.py FOLDER`.
"""

import sys
from pathlib import Path

from coordinator.app.settings import default_cache_folder
from coordinator.artifacts.specification import from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.facts.ids import ArtifactId
from coordinator.plan.loading import load_plan

PLAN = Path(__file__).resolve().parents[2] / "plans" / "voice.yaml"
NAMES = {
    "whisper-base": "whisper-base/{path}",
    "smollm2": "smollm2.gguf",
    "silero-vad": "silero_vad.onnx",
    "joe-voice": "voice{suffix}",
}
"""Artifact of the plan to the names that the tests use."""


def fill(folder: Path) -> None:
    """Fetches what is missing or damaged, and links every file under its name in the folder."""
    loaded = load_plan(PLAN)
    store = ArtifactStore(default_cache_folder())
    for artifact_id, name in NAMES.items():
        artifact = from_spec(
            ArtifactId(artifact_id), loaded.plan.artifacts[ArtifactId(artifact_id)]
        )
        store.pull(artifact, loaded.folder)
        for path, file in store.materialize(artifact).items():
            suffix = path[path.index(".onnx") :] if ".onnx" in path else ""
            link = folder / name.format(path=path, suffix=suffix)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(file)


if __name__ == "__main__":
    fill(Path(sys.argv[1]))
