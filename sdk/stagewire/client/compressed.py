"""FLAC, Ogg and MP3 as samples, by libsndfile. Only these: each of its decoders is native code."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from stagewire.client.kinds import HEAD_BYTES, kind_of
from stagewire.client.mpeg import after_tag, frames_of
from stagewire.client.ogg import pages_of
from stagewire.client.sound import (
    BLOCK_SAMPLES,
    TO_WAV,
    Wave,
    check_form,
    check_length,
    damaged,
    mixed,
)
from stagewire.errors import MediaInvalidError
from stagewire.tensor import Array

KINDS: Final = frozenset(
    {"FLAC audio", "MP3 audio", "Ogg Vorbis audio", "Ogg Opus audio", "Ogg FLAC audio"}
)
"""What is read, as `kind_of` names it."""
_UNKNOWN_FRAMES: Final = (1 << 63) - 1
"""Libsndfile says that of a file whose header leaves its length open."""


def check_library(kind: str, name: str) -> None:
    """Checks that compressed audio can be read at all, before a file is.

    Raises:
        MediaInvalidError: the library is not installed; the message says how to get it.
    """
    _library(kind, name)


def read_compressed(raw: bytes, kind: str, name: str) -> Wave:
    """Returns the samples of a compressed file, its channels mixed into one.

    Raises:
        MediaInvalidError: it is damaged, empty, too long, or the library is not installed.
    """
    library = _library(kind, name)
    content, count = raw, None
    if kind == "MP3 audio":
        kind = _kind_behind_tags(raw, name)
        content = raw[after_tag(raw) :]
    if kind == "MP3 audio":
        content, count = frames_of(content, name)
        check_length(count, name)
    elif kind.startswith("Ogg"):
        content = pages_of(raw, name)

    # Any: the library has no types.
    class Stream(library.SoundFile):  # type: ignore[misc,name-defined,unused-ignore]
        """Read from start to end: otherwise each block seeks, which resets decoders."""

        def seekable(self) -> bool:
            return False

    try:
        with Stream(_Reader(content)) as stream:
            check_form(stream.channels, stream.samplerate, name)
            wave = mixed(_blocks(stream), stream.samplerate, name)
            stated = stream.frames if count is None else 0
    except library.SoundFileError as error:
        reason = getattr(error, "error_string", str(error)).removeprefix("Error : ").rstrip(".")
        raise damaged(name, f"is {kind} that cannot be decoded ({reason})") from None
    if wave.samples.size < stated < _UNKNOWN_FRAMES:
        raise damaged(
            name, f"is cut off or damaged: {wave.samples.size} samples are there of {stated}"
        )
    return wave


def _kind_behind_tags(raw: bytes, name: str) -> str:
    """Returns what the tags of MP3 stand before, which others use as well."""
    start = after_tag(raw)
    kind = kind_of(raw[start : start + HEAD_BYTES]) if start else "MP3 audio"
    if kind == "AAC audio":
        raise damaged(name, f"is {kind}, which is not read")
    return kind if kind == "FLAC audio" else "MP3 audio"


class _Reader:
    """Bytes as a file that never fails: the library calls it from native code."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._position = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        origin = (0, self._position, self._content.nbytes)[whence]
        self._position = min(max(origin + offset, 0), self._content.nbytes)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer of cffi, hence Any."""
        some = self._content[self._position : self._position + len(buffer)]
        buffer[: some.nbytes] = some.tobytes()
        self._position += some.nbytes
        return some.nbytes


def _library(kind: str, name: str) -> Any:
    """Returns the module, which has no types, hence Any."""
    try:
        # Optional: only readers of compressed audio need it.
        import soundfile  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except (ImportError, OSError):
        # The second comes from a wheel for this machine that holds no libsndfile.
        raise MediaInvalidError(
            f"{name} is {kind}, which needs `pip install 'stagewire[audio]'`; or convert it to WAV,"
            f" {TO_WAV}"
        ) from None
    return soundfile


def _blocks(stream: Any) -> Iterator[Array]:
    """Yields what a stream holds, block by block; its length is not believed.

    A stream of the library has no types, hence Any.
    """
    block = np.empty((max(1, BLOCK_SAMPLES // stream.channels), stream.channels), np.float32)
    read: Callable[..., Array] = stream.read
    while len(got := read(out=block)):
        yield got
