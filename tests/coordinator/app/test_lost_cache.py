"""The cache is removed under a running coordinator: what runs goes on, a start says what lacks."""

import asyncio
import contextlib
import hashlib
import shutil

import numpy as np
import pytest

from coordinator.facts.ids import WorkerId
from coordinator.supervise.life import WorkerPhase
from stagewire.client import Client
from stagewire.errors import StageError
from testkit.plans import deed
from testkit.tiny_worker import Told, plan_of
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
SECONDS = 120.0
WEIGHTS = b"weights" * 1000


class Up:
    """A coordinator that is up, and what is asked of it."""

    def __init__(self, told, endpoint):
        self.told = told
        self.coordinator = told.coordinator
        self.endpoint = endpoint

    @property
    def runner(self):
        return self.coordinator.runners[WorkerId("a")]

    async def run(self):
        def ask():
            with Client(self.endpoint.address, self.endpoint.token) as client:
                return client.run("p", {"x": ITEM}, timeout=SECONDS)

        return len((await asyncio.to_thread(ask)).outputs["y"])

    async def failure(self):
        with pytest.raises(StageError) as caught:
            await self.run()
        return caught.value

    async def lose_the_worker(self):
        """Ends the worker and waits until it is up again, or given up."""
        before = self.runner.incarnation
        self.coordinator.lives[WorkerId("a")].hosting.process.kill_group()
        ends = (WorkerPhase.READY, WorkerPhase.FAILED)
        await until(lambda: self.runner.incarnation > before and self.runner.phase in ends, SECONDS)


@contextlib.asynccontextmanager
async def up(folder, plan, *, is_download_allowed=False):
    told = Told(folder, plan)
    told.coordinator.preparation.is_download_allowed = is_download_allowed
    async with told.coordinator.running() as endpoint:
        yield Up(told, endpoint)


def with_artifact(folder, plan):
    (folder / "model.bin").write_bytes(WEIGHTS)
    file = {
        "path": "model.bin",
        "sha256": hashlib.sha256(WEIGHTS).hexdigest(),
        "size": len(WEIGHTS),
        "from": "file:model.bin",
    }
    plan["artifacts"] = {"m": {"format": "fake:bytes", "licence": "MIT", "files": [file]}}
    plan["stages"]["one"]["artifact"] = "m"
    return plan


async def test_a_running_request_goes_on_without_the_cache(worker, cache, tmp_path):
    plan = with_artifact(tmp_path, plan_of(worker, deed("slow", seconds=1)))
    async with up(tmp_path, plan) as it:
        running = asyncio.create_task(it.run())
        attached = it.coordinator.lives[WorkerId("a")].hosting.attached
        await until(lambda: attached.heartbeat and any(x.is_busy for x in attached.heartbeat.lanes))
        shutil.rmtree(cache)
        assert await running == 1
        assert await it.run() == 1


async def test_an_environment_that_is_gone_is_built_anew_when_its_worker_starts(
    worker, cache, tmp_path
):
    async with up(tmp_path, plan_of(worker)) as it:
        shutil.rmtree(cache / "environments")
        await it.lose_the_worker()
        assert it.runner.phase is WorkerPhase.READY
        assert await it.run() == 1
        assert len(it.told.builds) == 1


async def test_a_cache_that_is_gone_is_made_again_for_its_owner_alone(worker, cache, tmp_path):
    async with up(tmp_path, plan_of(worker), is_download_allowed=True) as it:
        shutil.rmtree(cache)
        await it.lose_the_worker()
        assert await it.run() == 1
        assert cache.stat().st_mode & 0o777 == 0o700


async def test_without_permission_to_fetch_it_again_the_worker_is_given_up_and_says_so(
    worker, cache, tmp_path, monkeypatch
):
    async with up(tmp_path, plan_of(worker)) as it:
        shutil.rmtree(cache)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
        await it.lose_the_worker()
        assert it.runner.phase is WorkerPhase.FAILED
        assert it.runner.last_error.reason == "ENVIRONMENT_MISSING"
        assert "must be downloaded first; allow it with `--yes`" in it.runner.last_error.message
        failure = await it.failure()
        assert (failure.reason, "ENVIRONMENT_MISSING" in failure.message) == ("STAGE_FAILED", True)


async def test_files_of_an_artifact_that_are_gone_are_named_and_pulled_again_by_hand(
    worker, cache, tmp_path
):
    plan = with_artifact(tmp_path, plan_of(worker))
    async with up(tmp_path, plan) as it:
        for name in ("files", "artifacts"):
            shutil.rmtree(cache / name)
        assert await it.run() == 1
        await it.lose_the_worker()
        assert it.runner.phase is WorkerPhase.FAILED
        assert it.runner.last_error.reason == "ARTIFACT_MISSING"
        assert "run `coordinator artifacts pull" in it.runner.last_error.message

        it.coordinator.preparation.pull()
        it.coordinator.restart_worker(WorkerId("a"))
        await until(lambda: it.runner.phase is WorkerPhase.READY, SECONDS)
        assert await it.run() == 1
