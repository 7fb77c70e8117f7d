"""Images of every kind, honest and otherwise."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, TiffImagePlugin

from stagewire.client import image
from stagewire.errors import MediaInvalidError

pytestmark = [
    pytest.mark.unit,
    # The switch that makes warnings errors would turn damage that is passed over into refusals.
    pytest.mark.filterwarnings("ignore"),
]

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10
DEEP = np.array([[0, 255, 256, 32768, 65280, 65535]], np.uint16)
GREYS = [0, 0, 1, 128, 255, 255]


def saved(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def encoded(array, kind="PNG", mode=None, **options):
    picture = Image.fromarray(array)
    return saved(picture.convert(mode) if mode else picture, kind, **options)


def part(kind, body):
    check = zlib.crc32(kind + body).to_bytes(4, "big")
    return len(body).to_bytes(4, "big") + kind + body + check


def png(width, height, depth, colours, rows, *others):
    head = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    lines = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = (part(b"IHDR", head), *others, part(b"IDAT", lines), part(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def words(*numbers):
    return np.array(numbers, ">u2").tobytes()


def tiff(width, bits, interpretation, body, sample_format=1):
    tags = [
        (256, width),
        (257, 1),
        (258, bits),
        (259, 1),
        (262, interpretation),
        (273, 8),
        (277, 1),
        (278, 1),
        (279, len(body)),
        (339, sample_format),
    ]
    folder = struct.pack("<H", len(tags))
    folder += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(body)) + body + folder


def tiff_tags(**numbers):
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    for name, value in numbers.items():
        tags[int(name[1:])] = value
    return tags


def row(raw):
    return image(raw)[0].tolist()


# --- what is read ---


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_an_image_is_height_width_and_three_colours(tmp_path, kind):
    path = tmp_path / "wrong.jpg"
    path.write_bytes(encoded(PIXELS, kind, **({"lossless": True} if kind == "WEBP" else {})))
    for source in (path, str(path), path.read_bytes()):
        read = image(source)
        assert read.dtype == np.uint8
        assert read.flags.writeable
        assert np.array_equal(read, PIXELS)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
@pytest.mark.parametrize(
    ("orientation", "corner"),
    [
        *((1, (0, 0)), (2, (0, 1)), (3, (3, 1)), (4, (3, 0))),
        *((5, (0, 0)), (6, (0, 3)), (7, (1, 3)), (8, (1, 0))),
    ],
)
def test_a_photo_is_turned_as_its_camera_says(kind, orientation, corner):
    exif = Image.Exif()
    exif[0x0112] = orientation
    array = np.zeros((4, 2, 3), np.uint8)
    array[0, 0] = [255, 0, 0]
    array = array.repeat(8, axis=0).repeat(8, axis=1)
    read = image(encoded(array, kind, exif=exif))
    assert read.shape == ((32, 16, 3) if orientation < 5 else (16, 32, 3))
    assert np.argwhere(read[4::8, 4::8, 0] > 128).tolist() == [list(corner)]


def test_a_damaged_orientation_is_none():
    assert image(encoded(PIXELS, exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")).shape == PIXELS.shape


@pytest.mark.parametrize(
    "raw",
    [
        encoded(DEEP),
        encoded(DEEP, "TIFF"),
        encoded(DEEP, "TIFF", compression="tiff_adobe_deflate"),
        encoded(65535 - DEEP, "TIFF", tiffinfo=tiff_tags(_262=0)),
    ],
    ids=["png", "tiff", "deflate", "white-is-zero"],
)
def test_grey_of_16_bits_is_scaled(raw):
    assert row(raw) == [[grey] * 3 for grey in GREYS]


def test_colours_of_16_bits_are_scaled_alike():
    raw = png(2, 1, 16, 2, [words(*DEEP[0].tolist())])
    assert row(raw) == [GREYS[:3], GREYS[3:]]


def test_grey_of_12_bits_is_scaled():
    packed = bytes([0x00, 0x08, 0x00, 0xFF, 0xFF, 0xFF])
    assert row(tiff(4, 12, 1, packed)) == [[0] * 3, [128] * 3, [255] * 3, [255] * 3]


@pytest.mark.parametrize(
    ("bits", "greys"),
    [(1, [0, 0, 0, 255, 255, 0, 255, 255]), (2, [0, 85, 170, 255]), (4, [17, 187])],
)
def test_grey_of_few_bits_is_scaled(bits, greys):
    assert row(png(8 // bits, 1, bits, 0, [b"\x1b"])) == [[grey] * 3 for grey in greys]


def palette():
    picture = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "L")
    picture = picture.convert("P")
    picture.putdata([0, 1, 2])
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    return picture


RED, GREEN, BLUE, WHITE = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF"])
def test_a_palette_is_looked_up(kind):
    assert row(saved(palette(), kind)) == [RED, GREEN, BLUE]


def layer(mode, *pixels):
    return Image.frombytes(mode, (len(pixels), 1), bytes(sum(pixels, start=())))


@pytest.mark.parametrize(
    ("raw", "colours"),
    [
        (saved(palette(), "PNG", transparency=1), [RED, WHITE, BLUE]),
        (saved(palette(), "GIF", transparency=1), [RED, WHITE, BLUE]),
        (saved(palette(), "PNG", transparency=b"\0\x80\xff"), [WHITE, [127, 255, 127], BLUE]),
        (saved(layer("LA", (100, 0), (100, 255))), [WHITE, [100] * 3]),
        (saved(layer("RGBA", (9, 9, 9, 0), (100, 0, 0, 128))), [WHITE, [177, 127, 127]]),
        (saved(layer("RGBA", (9, 9, 9, 0), (1, 2, 3, 255)), "TIFF"), [WHITE, [1, 2, 3]]),
        (
            saved(layer("RGBA", (9, 9, 9, 0), (1, 2, 3, 255)), "WEBP", lossless=True),
            [WHITE, [1, 2, 3]],
        ),
        (saved(layer("L", (7,), (8,)), transparency=7), [WHITE, [8] * 3]),
        (saved(layer("RGB", (7, 8, 9), (1, 2, 3)), transparency=(7, 8, 9)), [WHITE, [1, 2, 3]]),
        (png(2, 1, 16, 0, [words(300, 301)], part(b"tRNS", words(300))), [WHITE, [1] * 3]),
        (png(2, 1, 16, 6, [words(1, 2, 3, 0, 0, 0, 512, 65535)]), [WHITE, [0, 0, 2]]),
    ],
)
def test_what_is_transparent_becomes_white(raw, colours):
    assert row(raw) == colours


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_colours_of_printers_become_those_of_screens(kind):
    raw = saved(Image.new("CMYK", (8, 8), (0, 255, 0, 0)), kind)
    assert row(raw)[0] == [255, 0, 255]


def test_jpeg_of_four_colours_in_the_other_model_is_read():
    # Luma and chroma of red, each inverted as Adobe does, and no black.
    raw = bytearray(saved(Image.new("CMYK", (8, 8), (76, 85, 255, 0)), "JPEG", quality=100))
    mark = raw.index(b"Adobe")
    raw[mark + 11] = 2
    assert np.abs(np.array(row(bytes(raw))[0]) - RED).max() < 4


def test_grey_jpeg_is_read():
    assert row(saved(Image.new("L", (8, 8), 77), "JPEG"))[0] == [77] * 3


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "MPO"])
def test_the_first_picture_of_several_is_taken(kind):
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    read = image(saved(first, kind, save_all=True, append_images=[second]))
    assert read.shape == (8, 8, 3)
    assert np.abs(read.astype(int) - RED).max() < 3


def pages(*kinds):
    """A TIFF file of one grey pixel a page; a kind of 1 says that it is a preview."""
    raw = b"II*\0" + struct.pack("<I", 12) + bytes([7, 0, 0, 0])
    for number, kind in enumerate(kinds):
        tags = {254: kind, 256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 1}
        raw += struct.pack("<H", len(tags))
        raw += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        raw += struct.pack("<I", len(raw) + 4 if number + 1 < len(kinds) else 0)
    return raw


def test_a_document_of_several_pages_is_refused():
    with pytest.raises(MediaInvalidError, match="several pages"):
        image(pages(0, 0))


def test_smaller_versions_of_the_same_picture_are_no_pages():
    assert row(pages(0, 1)) == [[7] * 3]


def test_a_raw_photo_that_begins_with_its_preview_is_refused():
    with pytest.raises(MediaInvalidError, match="preview"):
        image(pages(1, 0))


@pytest.mark.parametrize("size", [(1, 1), (20_000, 1), (1, 20_000)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP", "GIF"])
def test_any_shape_is_read(size, kind):
    assert image(saved(Image.new("RGB", size, "white"), kind)).shape == (size[1], size[0], 3)


def test_a_profile_of_colours_is_passed_over():
    assert np.array_equal(image(encoded(PIXELS, icc_profile=b"not a profile")), PIXELS)


# --- what is refused ---


def with_size(kind, width, height):
    raw = bytearray(saved(Image.new("RGB", (4, 4)), kind))
    if kind == "PNG":
        raw[16:24] = struct.pack(">II", width, height)
        raw[29:33] = zlib.crc32(raw[12:29]).to_bytes(4, "big")
    elif kind == "GIF":
        raw[6:10] = struct.pack("<HH", width, height)
        frame = raw.index(b"\x2c")
        raw[frame + 5 : frame + 9] = struct.pack("<HH", width, height)
    elif kind == "BMP":
        raw[18:26] = struct.pack("<ii", width, height)
    else:
        frame = raw.index(b"\xff\xc0")
        raw[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(raw)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "JPEG"])
@pytest.mark.parametrize("side", [9_000, 20_000, 65_535])
def test_too_many_pixels_are_refused_before_they_are_decoded(kind, side):
    with open("/proc/self/status", encoding="ascii") as status:
        before = int(status.read().split("VmHWM:")[1].split()[0])
    with pytest.raises(MediaInvalidError, match=r"over 67108864( pixels)?; make it smaller"):
        image(with_size(kind, side, side))
    with open("/proc/self/status", encoding="ascii") as status:
        after = int(status.read().split("VmHWM:")[1].split()[0])
    assert after - before < 64 << 10


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "JPEG"])
@pytest.mark.parametrize("size", [(0, 0), (0, 4), (4, 0)])
def test_an_image_without_pixels_is_refused(kind, size):
    with pytest.raises(MediaInvalidError):
        image(with_size(kind, *size))


@pytest.mark.parametrize(
    ("raw", "held"),
    [
        (encoded(np.ones((2, 2), np.float32), "TIFF"), "floating-point"),
        (encoded(np.ones((2, 2), np.int32), "TIFF"), "32-bit numbers"),
        (tiff(2, 16, 1, bytes(4), sample_format=2), "32-bit numbers"),
        (saved(Image.new("LAB", (2, 2)), "TIFF"), "CIELAB"),
        (png(1, 1, 16, 2, [bytes(6)], part(b"tRNS", bytes(6))), "colour of 16 bits"),
    ],
)
def test_numbers_of_unknown_range_are_refused_and_not_clipped(raw, held):
    with pytest.raises(MediaInvalidError, match=held) as refusal:
        image(raw)
    assert "save it as PNG" in refusal.value.message


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "an empty file"),
        (b"hello", "is text"),
        (b"%PDF-1.7", "PDF"),
        (b"\0\0\0\x18ftypheic", "HEIC"),
        (b"\0\0\0\x18ftypmif1", "HEIC"),
        (b"\0\0\0\x1cftypavif", "AVIF"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- x -->\n<svg/>', "SVG"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\xff\x0a\xfa", "JPEG XL"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"8BPS\0\1", "Photoshop"),
        (b"\0\0\1\0\1\0", "icon"),
        (b"II*\0\x10\0\0\0CR\2\0", "Canon raw"),
        (b"RIFF\0\0\0\0WAVEfmt ", "WAV audio"),
        (b"fLaC", "FLAC"),
        (b"BMxxxx", "is text"),
    ],
)
def test_what_is_no_image_is_refused_by_its_name(raw, kind):
    with pytest.raises(MediaInvalidError, match=kind) as refusal:
        image(raw)
    assert "magick" in refusal.value.message


NOISE = np.random.default_rng(1).integers(0, 255, (24, 20, 3), np.uint8)
FILES = {
    "png": encoded(NOISE),
    "palette": encoded(NOISE, mode="P"),
    "alpha": encoded(NOISE, mode="RGBA"),
    "deep": encoded(NOISE[:, :, 0].astype(np.uint16) * 257),
    "jpeg": encoded(NOISE, "JPEG"),
    "progressive": encoded(NOISE, "JPEG", progressive=True),
    "cmyk": encoded(NOISE, "JPEG", mode="CMYK"),
    "gif": encoded(NOISE, "GIF"),
    "bmp": encoded(NOISE, "BMP"),
    "tiff": encoded(NOISE, "TIFF"),
    "lzw": encoded(NOISE, "TIFF", compression="tiff_lzw"),
    "webp": encoded(NOISE, "WEBP"),
    "lossless": encoded(NOISE, "WEBP", lossless=True),
}


@pytest.mark.parametrize("name", FILES)
def test_every_beginning_of_a_file_is_refused_or_the_whole_picture(name):
    raw = FILES[name]
    whole = image(raw)
    for length in {*range(0, len(raw), 11), *range(64), *range(len(raw) - 40, len(raw))}:
        try:
            read = image(raw[:length])
        except MediaInvalidError:
            continue
        assert np.array_equal(read, whole)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_changed_bytes_do_no_worse_than_a_refusal(name, data):
    raw = bytearray(FILES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        end = data.draw(st.sampled_from([60, 300, len(raw)]))
        raw[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    try:
        read = image(bytes(raw))
    except MediaInvalidError:
        return
    assert read.dtype == np.uint8
    assert read.shape[2] == 3
