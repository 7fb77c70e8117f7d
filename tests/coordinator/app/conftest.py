"""A worker whose environment was built by an earlier run."""

import shutil

import pytest

from testkit.tiny_worker import Told, plan_of, write_worker


@pytest.fixture(scope="session")
def worker(tmp_path_factory):
    return write_worker(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def built_cache(worker, tmp_path_factory):
    root = tmp_path_factory.mktemp("run")
    preparation = Told(root, plan_of(worker)).coordinator.preparation
    preparation.is_download_allowed = True
    preparation.environments()
    return root / "cache"


@pytest.fixture
def cache(built_cache, tmp_path):
    """The cache of an earlier run, as the test's own."""
    shutil.copytree(built_cache, tmp_path / "cache", symlinks=True)
    return tmp_path / "cache"
