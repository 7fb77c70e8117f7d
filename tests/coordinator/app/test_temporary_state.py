"""State folders that go with their process, and the sweep of those that a killed one left."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from coordinator.app.state_folder import StateFolder
from coordinator.app.temporary_state import sweep_left_folders, temporary_state

pytestmark = pytest.mark.integration

PREFIX = "stagewire-test-"
HOLD = f"""
import sys
from coordinator.app.state_folder import StateFolder
from coordinator.app.temporary_state import temporary_state
with temporary_state({PREFIX!r}) as path:
    if sys.argv[1] == "empty":
        print(path, flush=True)
        sys.stdin.read()
    with StateFolder(path) as folder:
        (folder.logs / "a.log").write_text("a line")
        print(path, flush=True)
        sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holders():
    """Starts processes that hold a folder of their own; gives each and its folder."""
    started = []

    def start(what):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def left(parent, name="abcdefgh", mode=0o700):
    path = parent / f"{PREFIX}{name}"
    with StateFolder(path):
        pass
    path.chmod(mode)
    return path


@pytest.mark.parametrize("what", ["empty", "used"])
def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(holders, parent, what):
    killed, gone = holders(what)
    _, kept = holders(what)
    killed.kill()
    killed.wait()
    assert gone.is_dir()

    with temporary_state(PREFIX) as own:
        assert sorted(parent.iterdir()) == sorted([kept, own])
    assert list(parent.iterdir()) == [kept]


def test_a_folder_that_was_never_locked_goes_however_young_it_is(parent):
    (parent / f"{PREFIX}abcdefgh").mkdir(mode=0o700)

    assert len(sweep_left_folders(parent, PREFIX)) == 1


def test_a_folder_whose_coordinator_lives_stays_even_if_nobody_locks_the_folder(parent):
    path = parent / f"{PREFIX}abcdefgh"
    with StateFolder(path):
        assert sweep_left_folders(parent, PREFIX) == ()
    assert sweep_left_folders(parent, PREFIX) == (path,)


def test_whatever_is_not_certainly_left_stays(parent):
    with_more = left(parent, "withmore")
    (with_more / "diary.txt").write_text("mine")
    link = parent / f"{PREFIX}linklink"
    (parent / "elsewhere").mkdir(mode=0o700)
    link.symlink_to(parent / "elsewhere")
    file = parent / f"{PREFIX}filefile"
    file.touch(mode=0o700)
    stay = [
        with_more,
        link,
        parent / "elsewhere",
        file,
        left(parent, "openopen", 0o755),
        left(parent, "other"),
        left(parent, "with-a-name-of-its-own"),
        left(parent, "Abcdefgh"),
    ]
    if os.geteuid() == 0:
        stay.append(left(parent, "foreign_"))
        os.chown(stay[-1], 12345, -1)

    assert sweep_left_folders(parent, PREFIX) == ()
    assert sorted(parent.iterdir()) == sorted(stay)


def test_a_write_that_was_cut_off_by_the_kill_is_left_too(parent):
    path = left(parent)
    (path / ".endpoint.json.0123456789abcdef").touch(mode=0o600)

    assert sweep_left_folders(parent, PREFIX) == (path,)


def test_a_folder_is_never_swept_between_its_making_and_its_use(parent):
    has_ended = threading.Event()
    lost = []

    def sweep():
        while not has_ended.is_set():
            sweep_left_folders(parent, PREFIX)

    def use():
        for _ in range(150):
            with temporary_state(PREFIX) as path, StateFolder(path) as folder:
                lost.extend([path] if not folder.logs.is_dir() else [])

    sweepers = [threading.Thread(target=sweep) for _ in range(2)]
    users = [threading.Thread(target=use) for _ in range(2)]
    for thread in (*sweepers, *users):
        thread.start()
    for thread in users:
        thread.join()
    has_ended.set()
    for thread in sweepers:
        thread.join()

    assert lost == []
    assert list(parent.iterdir()) == []


def test_an_own_folder_that_was_taken_away_is_no_failure(parent):
    with temporary_state(PREFIX) as path:
        path.rmdir()

    assert list(parent.iterdir()) == []


def test_it_is_private_whatever_the_mask_says():
    before = os.umask(0)
    try:
        with temporary_state(PREFIX) as path:
            assert path.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
