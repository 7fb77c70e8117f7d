"""Versions of the libraries that both arms of `voice` run."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from coordinator.reach.layout import Environment

_SHARED = ("ctranslate2", "faster-whisper", "numpy", "onnxruntime", "piper-tts", "xllamacpp")


def installed(python: Path, names: Iterable[str] = _SHARED) -> dict[str, str]:
    """Returns the versions that another environment has of some libraries."""
    code = (
        "import importlib.metadata as m, json, sys;"
        "have = {d.name.lower().replace('_', '-'): d.version for d in m.distributions()};"
        "print(json.dumps({n: have[n] for n in sys.argv[1:] if n in have}))"
    )
    command = [str(python), "-I", "-c", code, *names]
    found: dict[str, str] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def of(environments: Mapping[str, Environment]) -> dict[str, str]:
    """Returns the libraries of all workers; not numpy, which the coordinator has one of its own."""
    found: dict[str, str] = {}
    for environment in environments.values():
        found |= installed(environment.python)
    return {name: version for name, version in found.items() if name != "numpy"}


def check_same(reference: Mapping[str, str], environments: Mapping[str, Environment]) -> None:
    """Compares the libraries of the reference with those of the workers.

    Raises:
        RuntimeError: one differs, so that nothing could be concluded.
    """
    for worker, environment in environments.items():
        for name, found in installed(environment.python).items():
            if reference.get(name) != found:
                raise RuntimeError(
                    f"worker {worker} has {name} {found}, the reference {reference.get(name)};"
                    " bring benchmarks/reference/uv.lock in line with the workers' locks"
                )
