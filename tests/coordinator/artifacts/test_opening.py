import os
import socket

import pytest

from coordinator.artifacts.opening import open_inside
from stagewire.errors import PathForbiddenError

pytestmark = pytest.mark.unit


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "model.bin").write_bytes(b"weights")
    (tmp_path / "secret").write_bytes(b"secret")
    return root


def test_a_regular_file_inside_is_opened(root):
    with open_inside(root, "folder/model.bin") as stream:
        assert stream.read() == b"weights"


def test_a_root_behind_a_link_is_the_operators_choice(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    with open_inside(tmp_path / "alias", "folder/model.bin") as stream:
        assert stream.read() == b"weights"


def test_an_absent_file_is_said_to_be_absent(root):
    with pytest.raises(FileNotFoundError):
        open_inside(root, "folder/other.bin")
    with pytest.raises(FileNotFoundError):
        open_inside(root, "elsewhere/model.bin")


@pytest.mark.parametrize(
    "path", ["../secret", "folder/../../secret", "/etc/passwd", "", "folder\\model.bin", "nul"]
)
def test_a_path_that_climbs_is_refused(root, path):
    with pytest.raises(PathForbiddenError):
        open_inside(root, path)


@pytest.mark.parametrize("target", ["../secret", "folder/model.bin", "nowhere"])
def test_a_symbolic_link_is_refused_wherever_it_leads(root, target):
    (root / "link").symlink_to(target)
    with pytest.raises(PathForbiddenError):
        open_inside(root, "link")


def test_a_symbolic_link_on_the_way_is_refused(root):
    (root / "link").symlink_to("folder")
    with pytest.raises(PathForbiddenError):
        open_inside(root, "link/model.bin")


def test_a_file_on_the_way_is_refused(root):
    with pytest.raises(PathForbiddenError):
        open_inside(root, "folder/model.bin/more")


def test_a_folder_is_refused(root):
    with pytest.raises(PathForbiddenError):
        open_inside(root, "folder")


@pytest.mark.timeout(30)
def test_a_fifo_is_refused_without_waiting_for_a_writer(root):
    os.mkfifo(root / "fifo")
    with pytest.raises(PathForbiddenError):
        open_inside(root, "fifo")


def test_a_socket_is_refused(root, monkeypatch):
    # A socket's path is short; the folder's may not be.
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(PathForbiddenError):
            open_inside(root, "socket")


def test_a_hard_link_to_the_outside_is_refused(root, tmp_path):
    os.link(tmp_path / "secret", root / "link")
    for within in ((), [root]):
        with pytest.raises(PathForbiddenError, match="hard link"):
            open_inside(root, "link", links_within=within)


def test_a_hard_link_is_taken_when_all_its_names_lie_inside(root):
    os.link(root / "folder" / "model.bin", root / "link")
    with pytest.raises(PathForbiddenError, match="hard link"):
        open_inside(root, "link")
    with open_inside(root, "link", links_within=[root]) as stream:
        assert stream.read() == b"weights"


def test_a_refusal_leaves_no_descriptor_open(root, tmp_path):
    os.link(tmp_path / "secret", root / "hard")
    (root / "soft").symlink_to("folder")
    before = sorted(os.listdir("/proc/self/fd"))
    for path in ("hard", "soft", "soft/model.bin", "folder", "absent", "folder/model.bin/x"):
        with pytest.raises((PathForbiddenError, FileNotFoundError)):
            open_inside(root, path)
    assert sorted(os.listdir("/proc/self/fd")) == before
