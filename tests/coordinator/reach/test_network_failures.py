"""Environments whose packages cannot be fetched, with the real uv: one sentence, nothing left."""

import textwrap

import pytest

from coordinator.reach.environments import EnvironmentBuilder
from stagewire.errors import EnvironmentBuildError
from testkit.index import Index

from .conftest import lock

pytestmark = pytest.mark.integration

PROJECT = """
[project]
name = "worker-tiny"
version = "1.0"
license = "MIT"
requires-python = ">=3.10"
dependencies = ["first"]
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[tool.stagewire]
module = "worker_tiny"
"""
# Of its own: any other would have to be fetched as well.
BACKEND = """
import pathlib, sys
sys.path.insert(0, {support!r})
from testkit.index import wheel_of
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "worker_tiny-1.0-py3-none-any.whl"
    wheel = wheel_of("worker_tiny", {{"worker_tiny.py": b"import first"}})
    pathlib.Path(folder, name).write_bytes(wheel)
    return name
"""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture
def index(monkeypatch):
    index = Index()
    index.add("first", {"first.py": b""})
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with index.serving() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        yield index


@pytest.fixture
def worker(index, tmp_path, monkeypatch, pytestconfig):
    """A worker folder that is locked, whose package nobody has fetched yet."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    support = str(pytestconfig.rootpath / "tests" / "support")
    (folder / "backend.py").write_text(textwrap.dedent(BACKEND.format(support=support)))
    index.has_hashes = True
    lock(folder)
    index.has_hashes = False
    index.downloads.clear()
    return folder


@pytest.fixture
def root(tmp_path):
    return tmp_path / "cache"


def ensure(root, worker):
    builder = EnvironmentBuilder(root, lambda phase, detail: None)
    return builder.ensure(worker, is_download_allowed=True)


def refusal(root, worker):
    with pytest.raises(EnvironmentBuildError) as caught:
        ensure(root, worker)
    environments = root / "environments" / "worker-tiny"
    assert not [each for each in environments.glob("*") if each.is_dir()], "nothing is left"
    first, *lines = caught.value.message.splitlines()
    assert lines, "the words of the tool follow"
    return first


def test_what_can_be_fetched_is_built(root, worker, index):
    assert ensure(root, worker).python.exists()
    assert set(index.downloads) == {"first"}


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (404, "not any more"),
        (410, "not any more"),
        (401, "who asks"),
        (403, "who asks"),
        (500, "try again later"),
    ],
)
def test_an_index_that_does_not_give_a_wheel(root, worker, index, status, remedy):
    index.wheel_status = status
    assert remedy in refusal(root, worker)


def test_a_wheel_with_other_bytes_than_the_lock_names(root, worker, index):
    index.add("first", {"first.py": b"import os"})
    assert "do not trust that index" in refusal(root, worker)


def test_nobody_listens_any_more(root, worker, index, monkeypatch):
    lines = (worker / "uv.lock").read_text().replace(index.address, "http://127.0.0.1:9/simple")
    (worker / "uv.lock").write_text(lines.replace(index.address[:-7], "http://127.0.0.1:9"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    assert "check the network" in refusal(root, worker)


def test_a_proxy_that_does_not_answer(root, worker, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    # To an index without TLS a proxy is no tunnel: it is asked itself.
    assert "check the network" in refusal(root, worker)


def test_a_network_that_is_forbidden(root, worker, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    assert "unset UV_OFFLINE" in refusal(root, worker)


def test_once_the_cause_is_mended_the_same_call_builds_it(root, worker, index):
    index.wheel_status = 503
    refusal(root, worker)
    index.wheel_status = 200
    assert ensure(root, worker).python.exists()
    environments = root / "environments" / "worker-tiny"
    assert len([each for each in environments.iterdir() if each.is_dir()]) == 1
