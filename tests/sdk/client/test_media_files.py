"""Paths as inputs: what stands there, and what may happen while it is read."""

import io
import os
import socket
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from stagewire.client import audio, image, text, write_wav
from stagewire.client.contents import opened
from stagewire.errors import MediaInvalidError
from stagewire.limits import MEDIA_BYTES

pytestmark = pytest.mark.unit

READERS = [audio, image, lambda path: text(Path(path))]


@pytest.fixture(params=READERS, ids=["audio", "image", "text"])
def read(request):
    return request.param


def test_a_missing_file_is_named_with_its_folder(tmp_path, read):
    path = tmp_path / "absent.wav"
    with pytest.raises(MediaInvalidError, match=f"{path} does not exist"):
        read(path)
    with pytest.raises(MediaInvalidError, match="does not exist"):
        read(tmp_path / "no" / "such" / "folder")


def test_a_file_is_no_folder(tmp_path, read):
    (tmp_path / "a").write_bytes(b"x")
    with pytest.raises(MediaInvalidError, match="does not exist"):
        read(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("https://example.org/talk.wav", "is an address; download it"),
        ("~/talk.wav", "instead of `~`"),
        ("a\0b", "cannot be the name of a file"),
        ("a\ud800b", "cannot be the name of a file"),
        ("", "does not exist"),
        ("x" * 5000, "name too long"),
        ("/dev/null", "is a device"),
        ("/dev/zero", "is a device"),
        ("-", "does not exist"),
    ],
)
def test_what_names_no_file_is_refused(path, words):
    with pytest.raises(MediaInvalidError, match=f"(?i){words}"):
        audio(path)


def test_a_folder_is_refused(tmp_path, read):
    with pytest.raises(MediaInvalidError, match="is a folder; name a file in it"):
        read(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(MediaInvalidError, match="is a pipe; save what comes out of it"):
        read(path)


def test_a_socket_is_refused(tmp_path, read):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(MediaInvalidError, match="is a socket"):
            read(tmp_path / "s")


def test_links_are_followed_unless_they_go_in_circles(tmp_path, read):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(MediaInvalidError, match="cannot be read: Too many levels"):
        read(tmp_path / "one")
    (tmp_path / "file").write_text("words", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert text(tmp_path / "link") == "words"


def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "secret.wav"
    write_wav(path, np.zeros(4, np.float32), 8000)
    path.chmod(0)
    # Root may read everything, so that the program gives itself up first.
    program = (
        "import os, sys\n"
        "from stagewire.client import audio\n"
        "from stagewire.errors import MediaInvalidError\n"
        "if os.geteuid() == 0: os.chmod(os.path.dirname(sys.argv[1]), 0o700); os.seteuid(65534)\n"
        "try: audio(sys.argv[1])\n"
        "except MediaInvalidError as refusal: print(refusal.message)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "cannot be read: Permission denied; name a file that you may read" in said.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros(3), "pass an array to the pipeline as it is"),
        (io.BytesIO(b""), "is an open file"),
        (3, "a int names no file"),
        (None, "a NoneType names no file"),
        ([b"a"], "a list names no file"),
    ],
)
@pytest.mark.parametrize("reader", [audio, image])
def test_what_is_no_source_is_refused(reader, given, words):
    with pytest.raises(MediaInvalidError, match=words):
        reader(given)


def test_bytes_may_come_in_any_form(tmp_path):
    write_wav(tmp_path / "x.wav", np.array([0.5], np.float32), 8000)
    raw = (tmp_path / "x.wav").read_bytes()
    for source in (raw, bytearray(raw), memoryview(raw)):
        assert audio(source)["audio"].tolist() == [0.5]


def test_a_path_of_bytes_is_content(tmp_path):
    with pytest.raises(MediaInvalidError, match="the content is text"):
        audio(os.fsencode(tmp_path / "x.wav"))


# --- size ---


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path, read):
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MediaInvalidError, match="long is over the limit of"):
        read(path)


@pytest.mark.parametrize("reader", [audio, image])
def test_a_large_file_of_another_kind_is_refused_without_being_read(tmp_path, reader):
    path = tmp_path / "empty.wav"
    with path.open("wb") as file:
        file.truncate(MEDIA_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(MediaInvalidError, match="unknown kind"):
            reader(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_content_over_the_limit_is_refused():
    with pytest.raises(MediaInvalidError, match="content is over the limit"), opened(bytes(11), 10):
        pass


def test_a_file_that_has_no_size_before_it_is_read():
    assert text(Path("/proc/version")).startswith("Linux")
    refused = pytest.raises(MediaInvalidError, match="over the limit of 4 bytes")
    with refused, opened("/proc/version", 4) as content:
        content.read()


# --- changes while it is read ---


def test_a_file_that_shrinks_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(50_000))
    with opened(path, 100_000) as content:
        blocks = content.file.read

        def shrink(size):
            os.truncate(path, 10_000)
            return blocks(size)

        class Shrinking:
            fileno = content.file.fileno
            read = staticmethod(shrink)

        with pytest.raises(MediaInvalidError, match="became shorter while it was read"):
            type(content)("x", b"", 100_000, Shrinking()).read()


def test_a_file_that_grows_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(50_000))
    with opened(path, 100_000) as content:
        read_on = content.file.read

        class Growing:
            fileno = content.file.fileno

            @staticmethod
            def read(size):
                with path.open("ab") as file:
                    file.write(bytes(1))
                return read_on(size)

        with pytest.raises(MediaInvalidError, match="still growing"):
            type(content)("x", b"", 100_000, Growing()).read()


def test_a_file_that_is_replaced_by_a_pipe_is_not_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    found = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr("stagewire.client.contents.os.stat", lambda _: found)
    with pytest.raises(MediaInvalidError, match="is a pipe"):
        audio(path)
