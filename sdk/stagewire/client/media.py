"""Files as inputs of pipelines: audio, images and text. Every limit is checked before reading."""

import codecs
import os
from pathlib import Path
from typing import Final

import numpy as np

from stagewire.client import compressed, picture
from stagewire.client.contents import Source, opened
from stagewire.client.given import shown, whole_number
from stagewire.client.kinds import is_wave, kind_of
from stagewire.client.sound import TO_WAV
from stagewire.client.wav import read_wave, write_samples
from stagewire.errors import MediaInvalidError
from stagewire.limits import MEDIA_BYTES, TEXT_BYTES
from stagewire.tensor import Array

_ENCODINGS: Final = {
    "UTF-16 text": "UTF-16",
    "UTF-32 text": "UTF-32",
    "text": "WINDOWS-1252",
    "data of an unknown kind": "WINDOWS-1252",
}
"""What is most likely the encoding of a text that is not UTF-8, by what the file seems to be."""


def audio(source: Source) -> dict[str, Array]:
    """Reads an audio file, given by path or as its bytes, into `audio` and `rate`.

    WAV is read as it is; FLAC, MP3 and Ogg need the extra `audio`. `audio` is float32 with one row
    of samples between -1 and 1, the mean of the channels; `rate` is a single int32.

    Raises:
        MediaInvalidError: it is no audio that can be read; the message says what it is.
    """
    with opened(source, MEDIA_BYTES) as content:
        kind, name = kind_of(content.head), content.name
        if is_wave(content.head):
            wave = read_wave(content.read(), name)
        elif kind in compressed.KINDS:
            compressed.check_library(kind, name)
            wave = compressed.read_compressed(content.read(), kind, name)
        else:
            raise MediaInvalidError(
                f"{name} is {kind}, not WAV, FLAC, MP3 or Ogg audio; convert it, {TO_WAV}"
            )
    return {"audio": wave.samples, "rate": np.asarray(wave.rate, np.int32)}


def write_wav(path: "str | os.PathLike[str]", samples: Array, rate: int) -> None:
    """Writes one row of samples, float between -1 and 1 or int16, as a WAV file.

    Raises:
        MediaInvalidError: the samples are not one row of finite numbers, or the rate is not one.
    """
    refusal = MediaInvalidError(f"the rate {shown(rate)} is no whole number of samples a second")
    Path(path).write_bytes(write_samples(samples, whole_number(rate, refusal)))


def image(source: Source) -> Array:
    """Reads an image, given by path or as its bytes, as uint8 [height, width, 3].

    It is turned as its camera says. What is transparent becomes white; of an animation the first
    picture is taken.

    Raises:
        MediaInvalidError: it cannot be read as an image, or Pillow is not installed.
    """
    with opened(source, MEDIA_BYTES) as content:
        kind, name = kind_of(content.head), content.name
        picture.check_library(name)
        if kind not in picture.KINDS:
            raise MediaInvalidError(
                f"{name} is {kind}, not a PNG, JPEG, WebP, BMP, GIF or TIFF image; {picture.TO_PNG}"
            )
        return picture.read_picture(content.read(), kind, name)


def text(source: "str | os.PathLike[str]") -> str:
    """Returns a text that was given as one, or reads the file of a `Path`, as UTF-8.

    Raises:
        MediaInvalidError: it is not UTF-8, too long, or has a NUL character.
    """
    if isinstance(source, str):
        # Each character takes one byte at least: this comes before a copy is made.
        if len(source) > TEXT_BYTES or len(source.encode(errors="replace")) > TEXT_BYTES:
            raise MediaInvalidError(f"a text is over the limit of {TEXT_BYTES} bytes; cut it")
        try:
            source.encode()
        except UnicodeEncodeError:
            raise MediaInvalidError("a text has a lone surrogate; it is not valid UTF-8") from None
        return _checked(source, "a text")
    if not isinstance(source, os.PathLike):
        raise MediaInvalidError(
            f"a {type(source).__name__} is no text; pass a str, or the Path of a file"
        )
    with opened(source, TEXT_BYTES + len(codecs.BOM_UTF8)) as content:
        raw, name = content.read().removeprefix(codecs.BOM_UTF8), content.name
        kind = kind_of(content.head)
    if len(raw) > TEXT_BYTES:
        raise MediaInvalidError(f"{name} is over the limit of {TEXT_BYTES} bytes; cut it")
    try:
        return _checked(raw.decode(), name)
    except UnicodeDecodeError as error:
        encoding = _ENCODINGS.get(kind)
        remedy = (
            f"convert it, for example with `iconv -f {encoding} -t UTF-8 IN > OUT`"
            if encoding
            else "name a file of text"
        )
        raise MediaInvalidError(
            f"{name} is {kind}, not UTF-8 text (byte {error.start}); {remedy}"
        ) from None


def _checked(words: str, name: str) -> str:
    position = words.find("\0")
    if position >= 0:
        raise MediaInvalidError(
            f"{name} has a NUL character (at {position}); remove it, or convert the text from"
            " UTF-16 with `iconv -f UTF-16 -t UTF-8 IN > OUT`"
        )
    return words
