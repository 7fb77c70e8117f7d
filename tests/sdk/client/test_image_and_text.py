"""Images and texts as inputs."""

import io
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from stagewire.client import image, text
from stagewire.errors import MediaInvalidError
from stagewire.limits import MEDIA_BYTES, TEXT_BYTES

pytestmark = pytest.mark.unit

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def encoded(array, kind="PNG", mode=None, **options):
    file = io.BytesIO()
    picture = Image.fromarray(array)
    (picture.convert(mode) if mode else picture).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_an_image_is_height_width_and_three_colours(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(encoded(PIXELS, kind))
    for source in (path, str(path), path.read_bytes()):
        read = image(source)
        assert read.dtype == np.uint8
        assert np.array_equal(read, PIXELS)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_other_colour_models_become_three_colours(mode):
    assert image(encoded(PIXELS, mode=mode)).shape == (2, 4, 3)


def test_a_photo_is_turned_as_its_camera_says():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert image(encoded(PIXELS, "JPEG", exif=exif)).shape == (4, 2, 3)


def test_an_image_that_would_lose_depth_is_refused():
    with pytest.raises(MediaInvalidError, match="8 bits"):
        image(encoded(np.full((2, 2), 40000, np.uint16)))


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded():
    row = zlib.compress(b"")

    def part(kind, body):
        check = zlib.crc32(kind + body).to_bytes(4, "big")
        return len(body).to_bytes(4, "big") + kind + body + check

    for side in (9000, 2**20):
        head = side.to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
        raw = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", row) + part(b"IEND", b"")
        with pytest.raises(MediaInvalidError):
            image(raw)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "an empty file"),
        (b"hello", "is text"),
        (b"%PDF-1.7", "PDF"),
        (encoded(np.zeros((64, 64, 3), np.uint8))[:60], "PNG"),
        (
            encoded(np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8), "JPEG")[:900],
            "JPEG",
        ),
    ],
)
def test_what_is_no_image_is_refused_by_its_name(raw, words):
    with pytest.raises(MediaInvalidError, match=words):
        image(raw)


def test_without_pillow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MediaInvalidError, match="install"):
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
    path.write_bytes("\ufeffgrüße\n".encode())
    assert text("grüße") == "grüße"
    assert text(path) == "grüße\n"
    assert text("") == ""


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"gr\xfc\xdfe und mehr Text", "byte 2"),
        ("x".encode("utf-16"), "UTF-16"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xed\xa0\x80abc", "byte 0"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused(tmp_path, raw, words):
    path = tmp_path / "x.txt"
    path.write_bytes(raw)
    with pytest.raises(MediaInvalidError, match=words):
        text(path)


def test_a_lone_surrogate_is_refused():
    with pytest.raises(MediaInvalidError, match="surrogate"):
        text("a\ud800")


@pytest.mark.parametrize("character", ["a", "é"])
def test_a_text_may_be_as_long_as_its_limit(tmp_path, character):
    whole = character * (TEXT_BYTES // len(character.encode()))
    path = tmp_path / "x.txt"
    path.write_text(whole, encoding="utf-8")
    assert text(whole) == whole
    assert text(path) == whole
    path.write_text(whole + "a", encoding="utf-8")
    for source in (whole + "a", path):
        with pytest.raises(MediaInvalidError, match="over the limit"):
            text(source)
