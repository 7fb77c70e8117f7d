"""The state folder: one holder, nobody else's eyes."""

import logging
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from coordinator.app.log_file import logging_to
from coordinator.app.state_folder import StateFolder
from stagewire.endpoint import FILE_NAME, is_held
from stagewire.errors import PathForbiddenError, StateHeldError

pytestmark = pytest.mark.integration


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_held_by_one_and_seen_to_be(tmp_path):
    path = tmp_path / "state"
    assert not is_held(path)
    with StateFolder(path):
        assert is_held(path)
        with pytest.raises(StateHeldError), StateFolder(path):
            pytest.fail("held twice")
        assert is_held(path)
    assert not is_held(path)


def test_whoever_only_looks_never_keeps_a_coordinator_from_starting(tmp_path):
    path = tmp_path / "state"
    has_ended = threading.Event()

    def look():
        while not has_ended.is_set():
            is_held(path)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            with StateFolder(path):
                pass
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()


def test_two_that_look_at_once_do_not_see_each_other(tmp_path):
    path = tmp_path / "state"
    with StateFolder(path):
        pass
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.extend(is_held(path) for _ in range(300)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not any(seen)


def test_whatever_the_mask_it_is_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        with StateFolder(tmp_path / "a" / "state") as folder:
            assert mode(folder.path) == mode(folder.logs) == 0o700
    finally:
        os.umask(before)


def test_one_that_a_coordinator_made_is_closed_again(tmp_path):
    with StateFolder(tmp_path / "state"):
        pass
    (tmp_path / "state").chmod(0o755)

    with StateFolder(tmp_path / "state") as folder:
        assert mode(folder.path) == 0o700


@pytest.mark.parametrize("bits", [0o755, 0o710, 0o702])
def test_another_folder_that_others_may_enter_is_refused_and_left_as_it_is(tmp_path, bits):
    path = tmp_path / "a folder"
    path.mkdir()
    path.chmod(bits)

    with pytest.raises(PathForbiddenError, match=r"chmod 700 '.*/a folder'"), StateFolder(path):
        pytest.fail("it was used")

    assert (mode(path), list(path.iterdir())) == (bits, [])


def test_a_folder_of_another_user_is_refused(tmp_path):
    path = Path("/")
    if os.geteuid() == 0:
        path = tmp_path / "foreign"
        path.mkdir(mode=0o700)
        os.chown(path, 12345, -1)

    with pytest.raises(PathForbiddenError, match="another user"), StateFolder(path):
        pytest.fail("it was used")


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    (path / "lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathForbiddenError), StateFolder(path):
        pytest.fail("it was used")
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_killed_one_left_is_removed_and_nothing_else_is_touched(tmp_path):
    path = tmp_path / "state"
    with StateFolder(path):
        pass
    left = [path / FILE_NAME, path / f".{FILE_NAME}.0123456789abcdef"]
    foreign = [
        path / "notes.txt",
        path / f"{FILE_NAME}.bak",
        path / f".{FILE_NAME}.swp",
        path / f".{FILE_NAME}.0123456789abcdef.txt",
        path / "logs" / "another.log",
        tmp_path / "elsewhere",
    ]
    for each in (*left, *foreign):
        each.write_text("something")
    (path / "link").symlink_to(tmp_path / "elsewhere")
    (path / "folder").mkdir()
    os.mkfifo(path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path / "a.sock"))

    with StateFolder(path):
        assert not any(each.exists() for each in left)

    assert [each.read_text() for each in foreign] == ["something"] * len(foreign)
    names = {"lock", "logs", "notes.txt", "link", "folder", "fifo", "a.sock"}
    assert {each.name for each in path.iterdir()} - names == {each.name for each in foreign[1:4]}


def test_a_link_in_place_of_the_endpoint_file_goes_and_what_it_names_stays(tmp_path):
    path = tmp_path / "state"
    with StateFolder(path):
        pass
    (tmp_path / "elsewhere").write_text("something")
    (path / FILE_NAME).symlink_to(tmp_path / "elsewhere")

    with StateFolder(path):
        assert not (path / FILE_NAME).is_symlink()

    assert (tmp_path / "elsewhere").read_text() == "something"


def test_a_folder_in_place_of_the_endpoint_file_is_refused_and_stays(tmp_path):
    path = tmp_path / "state"
    with StateFolder(path):
        pass
    (path / FILE_NAME / "deep").mkdir(parents=True)

    with pytest.raises(PathForbiddenError, match="move it away"), StateFolder(path):
        pytest.fail("it was used")

    assert (path / FILE_NAME / "deep").is_dir()
    assert not is_held(path)


def test_its_log_is_for_its_owner_alone_even_if_it_was_not(tmp_path):
    path = tmp_path / "coordinator.log"
    path.write_text("of an earlier version\n")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        with logging_to(path):
            logging.getLogger("coordinator").info("a line")
    finally:
        os.umask(before)

    assert mode(path) == 0o600
    assert path.read_text().startswith("of an earlier version\n")
    assert path.read_text().endswith("a line\n")


def test_a_full_log_becomes_the_older_one_and_the_next_is_private_too(tmp_path, monkeypatch):
    path = tmp_path / "coordinator.log"
    monkeypatch.setattr("coordinator.app.log_file.LOG_BYTES", 500)
    with logging_to(path):
        for number in range(20):
            logging.getLogger("coordinator").info("line %s", number)

    assert {each.name for each in tmp_path.iterdir()} == {path.name, f"{path.name}.1"}
    assert all(mode(each) == 0o600 for each in tmp_path.iterdir())


def test_a_link_in_place_of_the_log_is_refused(tmp_path):
    (tmp_path / "coordinator.log").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathForbiddenError), logging_to(tmp_path / "coordinator.log"):
        pytest.fail("it was followed")
    assert not (tmp_path / "elsewhere").exists()
