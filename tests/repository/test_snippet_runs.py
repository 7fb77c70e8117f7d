"""What pages show works: Python runs against a coordinator, the example executor conforms."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest
import tomllib

from coordinator.app.coordinator import Coordinator
from coordinator.app.settings import Settings
from coordinator.plan.loading import load_plan
from testkit.running import QUICK
from testkit.snippets import ROOT, snippets

pytestmark = pytest.mark.integration

CLIENT_PAGE = ROOT / "docs/client.md"
EXECUTOR_PAGE = ROOT / "docs/adding-an-executor.md"
CLIENT_SNIPPETS = [*snippets(ROOT / "README.md", "python"), *snippets(CLIENT_PAGE, "python")]

STANDS_BEFORE = """\
import threading
from collections.abc import Iterator

import numpy as np

from stagewire.client import audio, connect

client = connect()
inputs = audio("question.wav")
play = print


def microphone():
    yield np.zeros(1600, np.float32)


"""
"""What the snippets of a page take from the ones before them, or from their reader."""


@pytest.fixture
async def state(tmp_path):
    """The state folder of a coordinator that pretends every stage of plans/voice.yaml."""
    path = ROOT / "plans/voice.yaml"
    settings = Settings(path, tmp_path / "state", tmp_path / "cache", is_fake=True, timing=QUICK)
    async with Coordinator(settings, load_plan(path), lambda _, __: None).running():
        yield settings.state_folder


@pytest.fixture
def workplace(tmp_path):
    """A folder with the recordings that snippets name."""
    folder = tmp_path / "workplace"
    (folder / "samples").mkdir(parents=True)
    for target in ("samples/question.wav", "question.wav"):
        shutil.copy(ROOT / "samples/question.wav", folder / target)
    return folder


async def run_code(code, folder, state):
    """Runs a program on its own; returns what it printed."""
    program = folder / "snippet.py"
    program.write_text(code, encoding="utf-8")
    result = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", program],
        cwd=folder,
        env={**os.environ, "STAGEWIRE_STATE": str(state)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


async def test_python_of_the_pages_runs(state, workplace):
    assert len(CLIENT_SNIPPETS) > 5
    for snippet in CLIENT_SNIPPETS:
        printed = await run_code(STANDS_BEFORE + snippet.text, workplace, state)
        assert "Traceback" not in printed, str(snippet)
    assert (workplace / "reply.wav").stat().st_size > 44


async def test_the_readme_needs_nothing_before_it(state, workplace):
    for snippet in snippets(ROOT / "README.md", "python"):
        assert await run_code(snippet.text, workplace, state)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The worker of the page, written down."""
    folder = tmp_path_factory.mktemp("glossary")
    for snippet in snippets(EXECUTOR_PAGE, "python", "toml"):
        assert snippet.file_name, f"{snippet} has no file name before it"
        path = folder / snippet.file_name
        path.parent.mkdir(exist_ok=True)
        path.write_text(snippet.text, encoding="utf-8")
    (folder / "worker_glossary/__init__.py").touch()
    return folder


def run_python(project, *words, **options):
    return subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        **options,
    )


def test_the_example_executor_conforms(project):
    result = run_python(
        project,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", project),
        *("-c", os.devnull, "tests"),
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout


def test_the_example_declares_what_it_executes(project):
    declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    (entry,) = declared["tool"]["stagewire"]["executes"]
    code = (
        "from worker_glossary.glossary import GlossaryExecutor as E;"
        " (row,) = E().describe(); print(row.executor, row.device, *row.formats)"
    )
    described = run_python(project, "-c", code, stdin=subprocess.DEVNULL)
    assert described.stdout.split() == [entry["executor"], entry["device"], *entry["formats"]]


def test_the_entry_of_the_example_is_that_of_a_worker(project):
    result = run_python(project, "-m", "worker_glossary", input="")
    assert "standard input ended before the start line" in result.stderr
