"""A worker ends with its coordinator from its first moment on, while it imports its libraries."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / folder for folder in ("sdk", "workers/ortkit", "workers/cpu", "workers/speech")]
GONE_SECONDS = 10.0
SLOW_LIBRARY = """
import os, pathlib, signal
pathlib.Path(os.environ["FIFO"]).write_text(str(os.getpid()))
signal.pause()
"""
COORDINATOR = """
import signal, subprocess, sys
subprocess.Popen([sys.executable, "-m", sys.argv[1]], stdin=subprocess.PIPE)
signal.pause()
"""


@pytest.fixture
def start(tmp_path):
    """Starts a process that starts a worker; waits until that imports a library that never ends."""
    coordinators, pidfds = [], []

    def play(module, library):
        (tmp_path / f"{library}.py").write_text(SLOW_LIBRARY)
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        coordinator = subprocess.Popen(
            [sys.executable, "-c", COORDINATOR, module],
            env={
                **os.environ,
                "FIFO": str(fifo),
                "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, *SOURCES))),
            },
            stdin=subprocess.DEVNULL,
        )
        coordinators.append(coordinator)
        pidfds.append(os.pidfd_open(int(fifo.read_text())))
        return coordinator, pidfds[0]

    yield play
    for pidfd in pidfds:
        # Still there only when the test has failed.
        if not select.select([pidfd], [], [], 0)[0]:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
    for coordinator in coordinators:
        coordinator.kill()
        coordinator.wait()


@pytest.mark.parametrize("library", ["numpy", "grpc"])
@pytest.mark.parametrize("module", ["worker_cpu", "worker_speech", "stagewire.worker.fake"])
def test_a_worker_that_still_imports_ends_with_its_coordinator(start, module, library):
    coordinator, worker = start(module, library)

    coordinator.kill()

    assert select.select([worker], [], [], GONE_SECONDS)[0]
