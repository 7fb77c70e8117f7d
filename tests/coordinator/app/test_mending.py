"""A worker whose environment was damaged since it was built comes up all the same."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tomllib
import uv

from stagewire.client import Client
from stagewire.errors import StageError
from testkit import plans
from testkit.plans import deed
from testkit.running import make
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

REPOSITORY = Path(__file__).parents[3]
ITEM = np.ones(4, np.float32)
PROJECT = f"""
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
stagewire = {{ path = "{REPOSITORY / "sdk"}" }}
[tool.stagewire]
executes = [{{ executor = "fake", device = "cpu" }}]
"""
MAIN = """
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.host import main
main([FakeExecutor("fake")])
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """A worker of its own that needs what every worker needs."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "worker_tiny").mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "worker_tiny/__init__.py").write_text('"""A worker."""\n')
    (folder / "worker_tiny/__main__.py").write_text(MAIN)
    subprocess.run([uv.find_uv_bin(), "lock", "-q", "--no-config"], cwd=folder, check=True)
    assert tomllib.loads((folder / "uv.lock").read_text())["package"]
    return folder


@pytest.fixture(scope="module")
def cache(worker, tmp_path_factory):
    """A cache in which the environment of the worker was built by an earlier run."""
    root = tmp_path_factory.mktemp("run")
    coordinator = coordinator_of(root, plan_of(worker))
    coordinator.preparation.is_download_allowed = True
    coordinator.preparation.environments()
    return root / "cache"


@pytest.fixture
def site(cache, tmp_path):
    """The folder of libraries in the environment, in a cache of the test's own."""
    shutil.copytree(cache, tmp_path / "cache", symlinks=True)
    return next(tmp_path.glob("cache/environments/worker-tiny/*/lib/*/site-packages"))


def plan_of(worker, *script):
    plan = plans.single(*script)
    plan["workers"]["a"] = {"kind": "tiny", "environment": str(worker)}
    return plan


def coordinator_of(folder, plan):
    reports = []
    coordinator = make(folder, plan, report=lambda *words: reports.append(" ".join(words)))
    coordinator.reports = reports
    return coordinator


def builds(coordinator):
    return [line for line in coordinator.reports if "making the environment" in line]


@pytest.mark.parametrize("name", ["worker_tiny/__main__.py", "psutil/__init__.py"])
async def test_a_damaged_environment_is_built_anew_and_its_worker_started_once_more(
    worker, site, tmp_path, name
):
    (site / name).write_text("raise ImportError('damaged')\n")
    coordinator = coordinator_of(tmp_path, plan_of(worker))

    async with coordinator.running() as endpoint:
        with Client(endpoint.address, endpoint.token) as client:
            result = await asyncio.to_thread(client.run, "p", {"x": ITEM})
            assert len(result.outputs["y"]) == 1
            state = await asyncio.to_thread(client.placement)
    assert (state.workers[0].restarts, state.workers[0].last_reason) == (1, "WORKER_START_FAILED")
    assert len(builds(coordinator)) == 1


async def test_a_worker_that_fails_in_a_whole_environment_is_not_started_again(
    worker, site, tmp_path
):
    coordinator = coordinator_of(tmp_path, plan_of(worker, deed("crash", on="load")))

    with pytest.raises(StageError) as caught:
        async with coordinator.running():
            pytest.fail("the plan came up")

    assert caught.value.reason == "WORKER_START_FAILED"
    assert builds(coordinator) == []


async def test_a_plan_comes_up_without_an_optional_worker_that_cannot_be_mended(
    worker, site, tmp_path
):
    plan = plans.chain(first=[deed("crash", on="load")])
    plan["workers"]["a"] = {"kind": "tiny", "environment": str(worker), "optional": True}
    coordinator = coordinator_of(tmp_path, plan)

    async with coordinator.running() as endpoint:
        with Client(endpoint.address, endpoint.token) as client:
            result = await asyncio.to_thread(client.run, "p2", {"x": ITEM})
            assert len(result.outputs["y"]) == 1
        # It is tried again later, as often as any that was lost.
        await until(lambda: coordinator.runners["a"].restarts > 1)
