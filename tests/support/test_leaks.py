"""The leak probe itself: whatever stays behind is named."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from testkit.leaks import LeakProbe

pytestmark = pytest.mark.integration


@pytest.fixture
def probe(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return LeakProbe()


def left(probe):
    with pytest.raises(AssertionError) as caught:
        probe.check(0.05)
    return str(caught.value)


def test_nothing_is_named_when_nothing_is_left(probe):
    probe.check(0.05)


def test_a_descriptor_is_named(probe):
    ends = os.pipe()
    assert "'pipe': 2" in left(probe)
    for end in ends:
        os.close(end)
    probe.check()


def test_a_listener_is_named(probe):
    with socket.create_server(("127.0.0.1", 0)):
        assert "listeners" in left(probe)
    probe.check()


def test_a_thread_is_named(probe):
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait, name="forgotten-7")
    thread.start()
    assert "forgotten-N" in left(probe)
    may_end.set()
    thread.join()
    probe.check()


def test_a_file_is_named(probe):
    Path(tempfile.gettempdir(), "forgotten").touch()
    assert "forgotten" in left(probe)


def test_a_name_in_shared_memory_is_named(probe):
    path = Path(f"/dev/shm/stagewire-test-{os.getpid()}")
    path.touch()
    try:
        assert path.name in left(probe)
    finally:
        path.unlink()
    probe.check()


def test_a_process_is_named_and_ended(probe):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert "time.sleep(600)" in left(probe)
    assert process.wait(30) == -9
    probe.check()


def test_a_process_whose_parent_has_ended_is_named_and_ended(probe):
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time;"
        " time.sleep(601)'])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "time.sleep(601)" in left(probe)
    probe.check()
