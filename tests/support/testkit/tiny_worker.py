"""A worker of its own in an environment that is built for it: it needs what every worker needs."""

import subprocess
from pathlib import Path
from typing import Any, Final

import tomllib
import uv

from coordinator.app.coordinator import Coordinator
from testkit import plans
from testkit.running import make

_REPOSITORY: Final = Path(__file__).resolve().parents[3]
_PROJECT: Final = f"""
[project]
name = "worker-tiny"
version = "0.1.0"
license = "MIT"
requires-python = ">=3.10"
dependencies = ["stagewire[worker]"]
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = ["worker_tiny"]
[tool.uv.sources]
stagewire = {{ path = "{_REPOSITORY / "sdk"}" }}
[tool.stagewire]
executes = [{{ executor = "fake", device = "cpu", formats = ["fake:bytes"] }}]
"""
_MAIN: Final = """
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.host import main
main([FakeExecutor("fake")])
"""


def write_worker(folder: Path) -> Path:
    """Writes and locks the project of the worker; returns its folder."""
    (folder / "worker_tiny").mkdir()
    (folder / "pyproject.toml").write_text(_PROJECT)
    (folder / "worker_tiny/__init__.py").write_text('"""A worker."""\n')
    (folder / "worker_tiny/__main__.py").write_text(_MAIN)
    subprocess.run([uv.find_uv_bin(), "lock", "-q", "--no-config"], cwd=folder, check=True)
    assert tomllib.loads((folder / "uv.lock").read_text())["package"]
    return folder


def plan_of(worker: Path, *script: Any) -> plans.Plan:
    """A plan of one stage in the worker."""
    plan = plans.single(*script)
    plan["workers"]["a"] = {"kind": "tiny", "environment": str(worker)}
    return plan


class Told:
    """A coordinator, and what it told."""

    def __init__(self, folder: Path, plan: plans.Plan) -> None:
        self.reports: list[str] = []
        self.coordinator: Coordinator = make(
            folder, plan, report=lambda *words: self.reports.append(" ".join(words))
        )

    @property
    def builds(self) -> list[str]:
        return [line for line in self.reports if "making the environment" in line]
