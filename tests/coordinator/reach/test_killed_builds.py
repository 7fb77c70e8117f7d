"""A coordinator that is killed while it builds: nothing goes on, and nothing half-built is used."""

import os
import signal
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


DIE = """
import os, signal, sys
from pathlib import Path
from coordinator.reach.environments import EnvironmentBuilder
seen = sys.argv[3:]
def report(phase, detail):
    step = f"{phase.value}: {detail.split()[0]}"
    if step not in seen:
        print(step, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
builder = EnvironmentBuilder(Path(sys.argv[1]), report)
print(builder.ensure(Path(sys.argv[2]), is_download_allowed=True).python)
"""


def test_killed_again_and_again_one_step_later_each_time_it_is_built_in_the_end(checkout):
    steps = []
    while True:
        died = subprocess.run(
            [sys.executable, "-c", DIE, checkout.root, checkout.worker, *steps],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL
        steps.append(died.stdout.strip())
        found = checkout.builder().find(checkout.worker)
        assert found is None, f"half an environment is taken for a whole one after {steps}"

    assert {"wheels: building", "install: making", "check: importing"} <= set(steps)
    found = checkout.builder_without_tools().find(checkout.worker)
    assert str(found.python) == died.stdout.strip()
    folders = [each.name for each in checkout.home.iterdir() if each.is_dir()]
    assert folders == [found.folder.name]
    wheels = [each.name for each in (checkout.root / "wheels").glob("*/.building-*")]
    assert wheels == [], "what a killed build of a wheel left goes with the next one"
