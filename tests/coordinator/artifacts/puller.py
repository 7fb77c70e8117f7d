"""Pulls one artifact in a process of its own, in the way that a test asks for."""

import json
import sys
from pathlib import Path

from coordinator.artifacts.progress import Phase
from coordinator.artifacts.specification import from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.plan.artifact_spec import ArtifactSpec
from stagewire.errors import StageError


def tell(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fill(root):
    """Takes the last byte of the disk."""
    with (root / "filler").open("wb", buffering=0) as stream:
        size = 1 << 16
        while size:
            try:
                stream.write(bytes(size))
            except OSError:
                size //= 2


def main():
    request = json.loads(sys.argv[1])
    behaviour, _, phase = request["behaviour"].partition(":")
    root, base = Path(request["root"]), Path(request["base"])
    has_acted = False

    def report(progress):
        nonlocal has_acted
        if has_acted or not phase or progress.phase is not Phase(phase):
            return
        if behaviour == "hold" and not progress.done_bytes:
            return
        has_acted = True
        tell("reached")
        if behaviour == "hold":
            sys.stdin.readline()
        elif behaviour == "fill":
            fill(root)

    store = ArtifactStore(root)
    artifact = from_spec("model", ArtifactSpec.model_validate_json(request["artifact"]))
    try:
        store.pull(artifact, base, report)
    except StageError as error:
        left = sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and path.parent.name != "locks"
        )
        tell(json.dumps({"reason": error.reason, "message": error.message, "left": left}))
        sys.exit(2)
    tell("pulled")


main()
