import contextlib
import os
import subprocess
import sys

import pytest

from benchmarks.running import lock

pytestmark = pytest.mark.integration

HOLDER = """
import sys
from pathlib import Path
from benchmarks.running.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), "hop"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_run_is_told_who_measures(tmp_path):
    path = tmp_path / "lock"

    with holder(path) as process, pytest.raises(lock.HeldError) as caught, lock.held(path):
        pass

    assert f"process {process.pid} measures since" in str(caught.value)
    assert "hop" in str(caught.value)


def test_a_dead_run_holds_nothing(tmp_path):
    path = tmp_path / "lock"
    with holder(path) as process:
        process.kill()
        process.wait()

        with lock.held(path):
            pass


def test_the_lock_is_free_again_after_a_run(tmp_path):
    for _ in range(2):
        with lock.held(tmp_path / "lock"):
            pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic"), lock.held(tmp_path / "lock"):
        pass

    assert not (tmp_path / "elsewhere").exists()


def test_the_place_of_the_lock_depends_on_no_variable(monkeypatch):
    place = lock.default_path()

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "STAGEWIRE_CACHE"):
        monkeypatch.setenv(name, os.devnull)

    assert lock.default_path() == place
