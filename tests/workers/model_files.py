"""Real models for the tests of the workers: those of our plans, from the product's own cache.

As a program it fills a folder: `python tests/workers/model_files.py FOLDER`.
"""

import sys
from pathlib import Path

from coordinator.app.settings import default_cache_folder
from coordinator.artifacts.specification import from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.facts.ids import ArtifactId
from coordinator.plan.loading import load_plan

PLANS = Path(__file__).resolve().parents[2] / "plans"
NAMES = {
    "voice.yaml": {
        "whisper-base": "whisper-base/{path}",
        "smollm2": "smollm2.gguf",
        "silero-vad": "silero_vad.onnx",
        "joe-voice": "voice{suffix}",
    },
    "page.yaml": {
        "line-detector": "line-detector.onnx",
        "line-recogniser": "line-recogniser.onnx",
        "efficientnet-lite0": "efficientnet-lite0/{path}",
    },
}
"""Plan and its artifacts to the names that the tests use."""


def fill(folder: Path) -> None:
    """Fetches what is missing or damaged, and links every file under its name in the folder."""
    store = ArtifactStore(default_cache_folder())
    for plan, names in NAMES.items():
        loaded = load_plan(PLANS / plan)
        for artifact_id, name in names.items():
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
