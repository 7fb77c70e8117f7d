"""Images and texts as inputs."""

import sys

import pytest

from stagewire.client import image, text
from stagewire.errors import MediaInvalidError
from stagewire.limits import MEDIA_BYTES, TEXT_BYTES

pytestmark = pytest.mark.unit


def test_without_pillow_it_says_what_to_install(monkeypatch):
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MediaInvalidError, match=r"stagewire\[image\]"):
        image(b"")


def test_an_image_file_over_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "x.png"
    with path.open("wb") as file:
        file.truncate(MEDIA_BYTES + 1)
    with pytest.raises(MediaInvalidError, match="over the limit"):
        image(path)


# --- text ---


def test_a_text_is_itself_and_a_path_is_its_content(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffgrüße\r\n\tzwei\n".encode())
    assert text("grüße") == "grüße"
    assert text(path) == "grüße\r\n\tzwei\n"
    assert text("") == ""


def test_an_empty_file_is_an_empty_text(tmp_path):
    for content in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "x.txt").write_bytes(content)
        assert text(tmp_path / "x.txt") == ""


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"gr\xfc\xdfe und mehr Text", r"byte 2.*iconv -f WINDOWS-1252"),
        ("x".encode("utf-16"), r"UTF-16.*iconv -f UTF-16"),
        ("\ufeffx".encode("utf-16-be"), r"UTF-16.*iconv -f UTF-16"),
        ("x".encode("utf-32"), "UTF-32"),
        ("grüße".encode("utf-16-le"), "UTF-16|byte"),
        ("plain".encode("utf-16-le"), r"NUL character \(at 1\).*UTF-16"),
        (b"a\0b", "NUL"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image.*name a file of text"),
        (b"\xed\xa0\x80abc", "byte 0"),
        (b"a" * 5000 + b"\xff", "byte 5000"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused(tmp_path, raw, words):
    path = tmp_path / "x.txt"
    path.write_bytes(raw)
    with pytest.raises(MediaInvalidError, match=words):
        text(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [("a\ud800", "surrogate"), ("a\0", "NUL"), (b"bytes", "pass a str"), (None, "pass a str")],
)
def test_what_is_no_text_is_refused(given, words):
    with pytest.raises(MediaInvalidError, match=words):
        text(given)


@pytest.mark.parametrize("character", ["a", "é"])
def test_a_text_may_be_as_long_as_its_limit(tmp_path, character):
    whole = character * (TEXT_BYTES // len(character.encode()))
    path = tmp_path / "x.txt"
    for mark in ("", "\ufeff"):
        path.write_text(mark + whole, encoding="utf-8")
        assert text(path) == whole
    assert text(whole) == whole
    path.write_text(whole + "a", encoding="utf-8")
    for source in (whole + "a", path):
        with pytest.raises(MediaInvalidError, match="over the limit"):
            text(source)
