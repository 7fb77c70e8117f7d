"""Files as inputs of pipelines: audio, images and text. Every limit is checked before reading."""

import codecs
import io
import os
import struct
import warnings
from pathlib import Path
from typing import Final

import numpy as np

from stagewire.client.given import shown, whole_number
from stagewire.client.wav import read_wave, write_samples
from stagewire.errors import MediaInvalidError
from stagewire.limits import IMAGE_PIXELS, MEDIA_BYTES, TEXT_BYTES
from stagewire.tensor import Array

_TO_WAV: Final = "convert it, for example with `ffmpeg -i IN -c:a pcm_s16le OUT.wav`"
_IMAGE_FORMATS: Final = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
_NARROW_MODES: Final = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
"""Pillow's modes of up to 8 bits a sample; it would clip the others without a word."""
_BEGINNINGS: Final = (
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"OggS", "Ogg audio"),
    (b"FORM", "AIFF audio"),
    (b"caff", "CAF audio"),
    (b"#!AMR", "AMR audio"),
    (b"RF64", "RF64 audio, a WAV file over 4 GiB"),
    (b"RIFX", "RIFX audio, a big-endian WAV file"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def audio(source: "str | os.PathLike[str] | bytes") -> dict[str, Array]:
    """Reads a WAV file, given by path or as its bytes, into `audio` and `rate`.

    `audio` is float32 with one row of samples between -1 and 1, channels mixed into one; `rate` is
    a single int32.

    Raises:
        MediaInvalidError: it is not a WAV file that can be read; the message says what it is.
    """
    raw, name = _read(source, MEDIA_BYTES)
    if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        raise MediaInvalidError(f"{name} is {_kind(raw)}, not WAV audio; {_TO_WAV}")
    wave = read_wave(raw, name)
    return {"audio": wave.samples, "rate": np.asarray(wave.rate, np.int32)}


def write_wav(path: "str | os.PathLike[str]", samples: Array, rate: int) -> None:
    """Writes one row of samples, float between -1 and 1 or int16, as a WAV file.

    Raises:
        MediaInvalidError: the samples are not one row of finite numbers, or the rate is not one.
    """
    refusal = MediaInvalidError(f"the rate {shown(rate)} is no whole number of samples a second")
    Path(path).write_bytes(write_samples(samples, whole_number(rate, refusal)))


def image(source: "str | os.PathLike[str] | bytes") -> Array:
    """Reads an image, given by path or as its bytes, as uint8 [height, width, 3].

    It is turned as its camera says. Transparency is dropped.

    Raises:
        MediaInvalidError: it cannot be read as an image, or Pillow is not installed.
    """
    try:
        # Optional: only readers of images need it.
        from PIL import Image, ImageOps  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MediaInvalidError(
            "reading images needs Pillow, which is not installed;"
            " install it, or pass a uint8 array of shape [height, width, 3]"
        ) from None
    raw, name = _read(source, MEDIA_BYTES)
    # What Pillow's decoders raise on damaged files; they agree on no class.
    failures = (
        *(OSError, ValueError, SyntaxError, EOFError, struct.error),
        Image.DecompressionBombError,
    )
    try:
        with warnings.catch_warnings():
            # The limit below is stricter than the one that Pillow warns about.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(raw), formats=_IMAGE_FORMATS) as opened:
                width, height = opened.size
                if width * height > IMAGE_PIXELS:
                    raise MediaInvalidError(
                        f"{name} has {width} by {height} pixels, over {IMAGE_PIXELS};"
                        " make it smaller"
                    )
                if opened.mode not in _NARROW_MODES:
                    raise MediaInvalidError(
                        f"{name} has more than 8 bits a sample (mode {opened.mode}); convert it to"
                        " 8 bits"
                    )
                return np.array(ImageOps.exif_transpose(opened).convert("RGB"))
    except failures:
        raise MediaInvalidError(
            f"{name} is {_kind(raw)} that cannot be read as an image;"
            f" convert it to one of {', '.join(_IMAGE_FORMATS)}"
        ) from None


def text(source: "str | os.PathLike[str]") -> str:
    """Returns a text that was given as one, or reads the file of a `Path`, as UTF-8.

    Raises:
        MediaInvalidError: it is not UTF-8, or too long.
    """
    if isinstance(source, str):
        # Each character takes one byte at least: this comes before a copy is made.
        if len(source) > TEXT_BYTES or len(source.encode(errors="replace")) > TEXT_BYTES:
            raise MediaInvalidError(f"a text is over the limit of {TEXT_BYTES} bytes; cut it")
        try:
            source.encode()
        except UnicodeEncodeError:
            raise MediaInvalidError("a text has a lone surrogate; it is not valid UTF-8") from None
        return source
    raw, name = _read(source, TEXT_BYTES, mark=codecs.BOM_UTF8)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise MediaInvalidError(
            f"{name} is {_kind(raw)}, not UTF-8 text (byte {error.start}); convert it, for example"
            " with `iconv -t utf-8`"
        ) from None


def _read(
    source: "str | os.PathLike[str] | bytes", limit_bytes: int, mark: bytes = b""
) -> tuple[bytes, str]:
    """Returns the content, without a mark that it may begin with, and what messages call it."""
    limit = limit_bytes + len(mark)
    if isinstance(source, bytes):
        raw, name, size = source, "the content", len(source)
    else:
        path = Path(source)
        name = path.name or str(path)
        try:
            if not path.is_file():
                raise MediaInvalidError(f"{path} is not a file; name one that exists")
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                # One byte more shows a file that has grown since.
                raw = file.read(limit + 1) if size <= limit else b""
        except OSError as error:
            raise MediaInvalidError(f"{path} cannot be read: {error.strerror}") from None
    content = raw.removeprefix(mark)
    if size > limit or len(content) > limit_bytes:
        raise MediaInvalidError(f"{name} is over the limit of {limit_bytes} bytes; cut it")
    return content, name


def _kind(raw: bytes) -> str:
    """Returns what a file seems to be, for people."""
    if not raw:
        return "an empty file"
    for beginning, kind in _BEGINNINGS:
        if raw.startswith(beginning):
            return kind
    if raw[4:8] == b"ftyp":
        return "an MP4 or M4A file"
    if raw.startswith(b"RIFF"):
        return f"a RIFF file of kind {raw[8:12]!r}"
    if raw[0] == 0xFF and len(raw) > 1 and raw[1] & 0xE0 == 0xE0:  # noqa: PLR2004 - MPEG's sync word
        return "MP3 or AAC audio"
    try:
        raw[:4096].decode()
    except UnicodeDecodeError as error:
        # A cut inside the last character is no damage.
        if error.start < len(raw[:4096]) - 3:
            return "data of an unknown kind"
    return "data of an unknown kind" if b"\0" in raw[:4096] else "text"
