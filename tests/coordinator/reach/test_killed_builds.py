"""A coordinator that is killed while it builds takes with it everything that builds for it."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).parents[3]
SECONDS = 60

BUILD = """
import sys
from pathlib import Path
from coordinator.reach.environments import EnvironmentBuilder
builder = EnvironmentBuilder(Path(sys.argv[1]), lambda phase, detail: None)
builder.ensure(Path(sys.argv[2]), is_download_allowed=True)
"""
HANG = """
import os, signal, subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
with open({fifo!r}, "w") as fifo:
    fifo.write(str(helper.pid))
signal.pause()
"""


def hang_in_the_backend(checkout, fifo):
    (checkout.folder / "sdk/backend.py").write_text(HANG.format(fifo=fifo))
    pyproject = checkout.folder / "sdk/pyproject.toml"
    text = pyproject.read_text().replace('"hatchling>=1.27"', "")
    pyproject.write_text(text.replace('"hatchling.build"', '"backend"\nbackend-path = ["."]'))


def hang_in_the_import_check(checkout, fifo):
    checkout.worker_source.write_text(HANG.format(fifo=fifo))


@pytest.mark.parametrize("hang", [hang_in_the_backend, hang_in_the_import_check])
def test_no_process_outlives_a_coordinator_that_is_killed_while_it_builds(checkout, hang, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hang(checkout, str(fifo))
    coordinator = subprocess.Popen(
        [sys.executable, "-c", BUILD, checkout.root, checkout.worker],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
    )
    helper = int(fifo.read_text())
    family = psutil.Process(coordinator.pid).children(recursive=True)
    assert helper in {each.pid for each in family}

    coordinator.kill()
    coordinator.communicate()

    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    for process in alive:
        process.kill()
    assert not alive
