"""A checkout with a tiny worker, and a bare environment for processes."""

import os
import shutil
import subprocess
import textwrap
import venv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uv

from coordinator.reach.environments import EnvironmentBuilder
from coordinator.reach.tool import Phase

REPOSITORY = Path(__file__).parents[3]
BUILD_SYSTEM = '[build-system]\nrequires = ["hatchling>=1.27"]\nbuild-backend = "hatchling.build"\n'
SDK_PROJECT = f"""
[project]
name = "stagewire"
version = "0.1.0"
requires-python = ">=3.10"
{BUILD_SYSTEM}
[tool.hatch.build.targets.wheel]
packages = ["stagewire"]
"""
WORKER_PROJECT = f"""
[project]
name = "worker-tiny"
version = "0.1.0"
license = "MIT"
requires-python = ">=3.10"
dependencies = ["iniconfig>=2", "stagewire"]
{BUILD_SYSTEM}
[tool.hatch.build.targets.wheel]
packages = ["worker_tiny"]
[tool.uv.sources]
stagewire = {{ path = "../../sdk" }}
[tool.stagewire]
import-check = ["iniconfig"]
"""


@dataclass
class Checkout:
    """A checkout, a cache root and what was reported about it."""

    folder: Path
    root: Path
    reports: list[tuple[Phase, str]] = field(default_factory=list)

    @property
    def worker(self) -> Path:
        return self.folder / "workers" / "tiny"

    @property
    def worker_source(self) -> Path:
        return self.worker / "worker_tiny" / "__init__.py"

    @property
    def sdk_source(self) -> Path:
        return self.folder / "sdk" / "stagewire" / "__init__.py"

    @property
    def home(self) -> Path:
        return self.root / "environments" / "worker-tiny"

    def builder(self, report=None, **options) -> EnvironmentBuilder:
        return EnvironmentBuilder(self.root, report or self.note, **options)

    def note(self, phase: Phase, detail: str) -> None:
        self.reports.append((phase, detail))

    def builder_without_tools(self) -> EnvironmentBuilder:
        return self.builder(uv=Path("/nonexistent/uv"))

    def edit_sdk(self, text: str) -> None:
        with self.sdk_source.open("a") as source:
            source.write(f"\nEDITED = {text!r}\n")


@pytest.fixture(scope="session")
def checkout_template(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "sdk/stagewire", folder / "sdk/stagewire", ignore=ignored)
    (folder / "sdk/pyproject.toml").write_text(SDK_PROJECT)
    worker = folder / "workers/tiny"
    (worker / "worker_tiny").mkdir(parents=True)
    (worker / "pyproject.toml").write_text(WORKER_PROJECT)
    (worker / "worker_tiny/__init__.py").write_text("import stagewire.errors\n")
    (worker / "worker_tiny/__main__.py").write_text("print('tiny runs')\n")
    lock(worker)
    return folder


@pytest.fixture
def checkout(checkout_template, tmp_path) -> Checkout:
    shutil.copytree(checkout_template, tmp_path / "checkout")
    return Checkout(tmp_path / "checkout", tmp_path / "cache")


@pytest.fixture(scope="session")
def built_template(checkout_template, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("built")
    Checkout(checkout_template, root).builder().ensure(
        checkout_template / "workers/tiny", is_download_allowed=True
    )
    return root


@pytest.fixture
def built(checkout, built_template) -> Checkout:
    """A checkout whose environment was built by an earlier run."""
    shutil.copytree(built_template, checkout.root, symlinks=True)
    return checkout


@pytest.fixture
def no_network(monkeypatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")


def lock(worker: Path) -> None:
    subprocess.run([uv.find_uv_bin(), "lock", "-q", "--no-config"], cwd=worker, check=True)


@dataclass
class BareEnvironment:
    """An environment in which modules are written down by tests."""

    folder: Path
    python: Path

    def write_module(self, name: str, code: str) -> str:
        site = next(self.folder.glob("lib/python*/site-packages"))
        (site / f"{name}.py").write_text(textwrap.dedent(code))
        return name


@pytest.fixture(scope="session")
def bare_environment(tmp_path_factory) -> BareEnvironment:
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, symlinks=True, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "sdk.pth").write_text(f"{REPOSITORY / 'sdk'}\n")
    return BareEnvironment(folder, folder / "bin/python")


@pytest.fixture
def open_descriptors() -> Callable[[], int]:
    return lambda: len(os.listdir("/proc/self/fd"))
