"""Interpreters that a plan names: environments that somebody else made."""

from pathlib import Path
from typing import Final

from coordinator.reach.attestation import record_digests
from coordinator.reach.interpreters import ask_interpreter
from coordinator.reach.layout import Environment
from stagewire.errors import EnvironmentBrokenError

_OLDEST_PYTHON: Final = (3, 10)
_PROBE: Final = """
import importlib.metadata, importlib.util, json, sys
module = sys.argv[1]
distributions = {"stagewire"}
if sys.version_info >= (3, 10):
    distributions.update(importlib.metadata.packages_distributions().get(module, ()))
sites = {}
for name in sorted(distributions):
    try:
        sites[name] = str(importlib.metadata.distribution(name).locate_file(""))
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "has_module": importlib.util.find_spec(module) is not None,
    "sites": sites,
}))
"""


def foreign_environment(python: Path, worker_module: str) -> Environment:
    """Returns an environment of an existing interpreter after asking it what it holds.

    Raises:
        EnvironmentBrokenError: it is no working interpreter, too old, or lacks the worker.
    """
    answer = ask_interpreter(python, _PROBE, worker_module)
    version = ".".join(map(str, answer["version"]))
    if tuple(answer["version"]) < _OLDEST_PYTHON:
        raise EnvironmentBrokenError(f"{python.name} is Python {version}; 3.10 or newer is needed")
    missing = [] if answer["has_module"] else [worker_module]
    if "stagewire" not in answer["sites"]:
        missing.append("stagewire")
    if missing:
        raise EnvironmentBrokenError(
            f"the interpreter that the plan names has no {' and no '.join(missing)};"
            " install it there"
        )
    distributions: dict[str, str] = {}
    for name, site in answer["sites"].items():
        distributions |= record_digests(Path(site), [name])
    return Environment(
        python=python,
        key="",
        worker_module=worker_module,
        folder=python.parent,
        distributions=distributions,
    )
