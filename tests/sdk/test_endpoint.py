"""The endpoint file."""

import dataclasses
import fcntl
import json
import os
import stat
from pathlib import Path

import pytest

from stagewire.endpoint import (
    Endpoint,
    default_state_folder,
    explain_silence,
    is_held,
    read_endpoint,
    remove_endpoint,
    remove_left,
    write_endpoint,
)
from stagewire.errors import CoordinatorUnreachableError, PathForbiddenError

pytestmark = pytest.mark.unit

ENDPOINT = Endpoint("127.0.0.1:4000", "secret", "127.0.0.1:4001", "other", 17, "voice")


def test_what_was_written_is_read(tmp_path):
    folder = tmp_path / "deep" / "state"
    path = write_endpoint(folder, ENDPOINT)
    assert read_endpoint(folder) == ENDPOINT
    assert json.loads(path.read_text()) == dataclasses.asdict(ENDPOINT)
    assert [item.name for item in folder.iterdir()] == ["endpoint.json"]


def test_file_and_folder_are_closed_to_others_whatever_the_mask_says(tmp_path):
    before = os.umask(0)
    try:
        path = write_endpoint(tmp_path / "state", ENDPOINT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_older_file_is_replaced_and_not_written_into(tmp_path):
    path = write_endpoint(tmp_path, ENDPOINT)
    held = path.open()
    write_endpoint(tmp_path, dataclasses.replace(ENDPOINT, token="fresh"))
    assert "secret" in held.read()
    held.close()
    assert read_endpoint(tmp_path).token == "fresh"


def test_tokens_are_not_shown():
    assert "secret" not in repr(ENDPOINT)
    assert "other" not in repr(ENDPOINT)


def test_no_file_means_no_coordinator(tmp_path):
    with pytest.raises(CoordinatorUnreachableError, match="coordinator up"):
        read_endpoint(tmp_path)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o606, 0o644])
def test_a_file_that_is_open_to_others_is_refused(tmp_path, mode):
    write_endpoint(tmp_path, ENDPOINT).chmod(mode)
    with pytest.raises(PathForbiddenError, match=f"{mode:04o}"):
        read_endpoint(tmp_path)


def test_a_link_is_refused(tmp_path):
    target = write_endpoint(tmp_path / "other", ENDPOINT)
    (tmp_path / "endpoint.json").symlink_to(target)
    with pytest.raises(PathForbiddenError):
        read_endpoint(tmp_path)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "endpoint.json")
    with pytest.raises(PathForbiddenError):
        read_endpoint(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "[" * 10000,
        "\xff",
        json.dumps({"address": "127.0.0.1:4000"}),
        json.dumps({**dataclasses.asdict(ENDPOINT), "pid": "17"}),
        json.dumps({**dataclasses.asdict(ENDPOINT), "pid": True}),
        json.dumps({**dataclasses.asdict(ENDPOINT), "token": None}),
        json.dumps({**dataclasses.asdict(ENDPOINT), "token": "x" * 20000}),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "endpoint.json"
    path.touch(mode=0o600)
    path.write_text(content, encoding="latin-1")
    with pytest.raises(CoordinatorUnreachableError, match="start"):
        read_endpoint(tmp_path)


def test_a_field_of_a_newer_version_does_not_matter(tmp_path):
    path = write_endpoint(tmp_path, ENDPOINT)
    path.write_text(json.dumps({**dataclasses.asdict(ENDPOINT), "dashboard": "x"}))
    assert read_endpoint(tmp_path) == ENDPOINT


def test_only_its_writer_removes_it(tmp_path):
    path = write_endpoint(tmp_path, ENDPOINT)
    remove_endpoint(tmp_path, 18)
    assert path.exists()
    remove_endpoint(tmp_path, 17)
    remove_endpoint(tmp_path, 17)
    assert not path.exists()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"STAGEWIRE_STATE": "/x/y", "XDG_STATE_HOME": "/z"}, Path("/x/y")),
        ({"XDG_STATE_HOME": "/z"}, Path("/z/stagewire")),
        ({"XDG_STATE_HOME": "z"}, Path("/home/user/.local/state/stagewire")),
        ({"STAGEWIRE_STATE": ""}, Path("/home/user/.local/state/stagewire")),
        ({"STAGEWIRE_STATE": "~/s"}, Path("/home/user/s")),
    ],
)
def test_the_state_folder_follows_the_environment(monkeypatch, variables, folder):
    for name in ("STAGEWIRE_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/user")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert default_state_folder() == folder


# --- whether its coordinator lives ---


@pytest.fixture
def lock(tmp_path):
    """Gives a function that holds the state folder as a coordinator does, and lets go of it."""
    held = []

    def hold():
        descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(descriptor)
        return lambda: os.close(held.pop())

    yield hold
    for descriptor in held:
        os.close(descriptor)


def test_a_file_that_a_coordinator_left_is_no_coordinator_whoever_has_its_process_id(
    tmp_path, lock
):
    # The id is that of a process that lives: this one.
    endpoint = dataclasses.replace(ENDPOINT, pid=os.getpid())
    write_endpoint(tmp_path, endpoint)
    release = lock()
    assert read_endpoint(tmp_path) == endpoint
    assert is_held(tmp_path)

    release()

    with pytest.raises(CoordinatorUnreachableError) as failure:
        read_endpoint(tmp_path)
    for part in (str(tmp_path), "not running any more", str(os.getpid()), "'voice'", "start it"):
        assert part in failure.value.message
    assert is_held(tmp_path) is False


def test_a_coordinator_that_does_not_answer_yet_is_not_taken_for_none(tmp_path, lock):
    lock()
    with pytest.raises(CoordinatorUnreachableError, match="does not answer: it starts or stops"):
        read_endpoint(tmp_path)


def test_where_it_cannot_be_told_the_file_is_believed(tmp_path):
    write_endpoint(tmp_path, ENDPOINT)
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    assert is_held(tmp_path) is None
    assert read_endpoint(tmp_path) == ENDPOINT


def test_the_silence_of_a_coordinator_is_explained_by_what_became_of_it(tmp_path, lock):
    write_endpoint(tmp_path, ENDPOINT)
    assert "no coordinator answers at" in explain_silence(tmp_path, ENDPOINT).message
    release = lock()
    assert "process 17, does not answer at" in explain_silence(tmp_path, ENDPOINT).message
    write_endpoint(tmp_path, dataclasses.replace(ENDPOINT, pid=18))
    assert "started again since, as process 18" in explain_silence(tmp_path, ENDPOINT).message
    release()
    assert "not running any more" in explain_silence(tmp_path, ENDPOINT).message
    (tmp_path / "endpoint.json").chmod(0o644)
    assert "open to other users" in explain_silence(tmp_path, ENDPOINT).message
    (tmp_path / "endpoint.json").unlink()
    assert "no coordinator is running on" in explain_silence(tmp_path, ENDPOINT).message


def test_what_a_killed_writer_left_half_done_is_removed_too(tmp_path):
    write_endpoint(tmp_path, ENDPOINT)
    (tmp_path / ".endpoint.json.0123456789abcdef").touch()
    (tmp_path / "lock").touch()

    remove_left(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
