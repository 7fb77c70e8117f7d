"""WAV files as samples: read with every header doubted, written as 16-bit PCM."""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.client.given import shown
from stagewire.errors import MediaInvalidError
from stagewire.limits import AUDIO_CHANNELS, AUDIO_RATE
from stagewire.tensor import Array

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_OTHER_CODINGS: Final = {
    0x0002: "ADPCM",
    0x0006: "A-law",
    0x0007: "mu-law",
    0x0011: "IMA ADPCM",
    0x0031: "GSM",
    0x0055: "MP3",
}
_EXTENSIBLE_SUFFIX: Final = bytes.fromhex("000000001000800000aa00389b71")
_CODINGS: Final = {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}
_UNKNOWN_SIZE: Final = 0xFFFFFFFF
"""Written by programs that cannot seek back: the samples go on to the end of the file."""
_RIFF_HEAD: Final = 12
_CHUNK_HEAD: Final = struct.Struct("<4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
_FORMAT_EXTENSION: Final = struct.Struct("<HHIH14s")
_REMEDY: Final = (
    "save it again as WAV with 16-bit PCM, for example `ffmpeg -i IN -c:a pcm_s16le OUT.wav`"
)


@dataclass(frozen=True, slots=True)
class Wave:
    """Samples of one channel, and how many of them there are in a second."""

    samples: Array
    rate: int


@dataclass(frozen=True, slots=True)
class _Format:
    tag: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        return self.channels * self.bits // 8


def read_wave(raw: "memoryview | bytes", name: str) -> Wave:
    """Returns the samples of a WAV file between -1 and 1, its channels mixed into one.

    Raises:
        MediaInvalidError: it is damaged, empty, or of a coding that is not read.
    """
    view = memoryview(raw)
    coding: _Format | None = None
    position = _RIFF_HEAD
    # The size in the RIFF header is not used: programs that stream write what they like there.
    while position + _CHUNK_HEAD.size <= view.nbytes:
        kind, size = _CHUNK_HEAD.unpack_from(view, position)
        start = position + _CHUNK_HEAD.size
        if kind == b"data":
            if coding is None:
                raise _invalid(name, "has its samples before their format")
            return _samples(view[start:], size, coding, name)
        if start + size > view.nbytes:
            raise _invalid(name, "ends inside its header")
        if kind == b"fmt ":
            coding = _format(view[start : start + size], name)
        position = start + size + size % 2
    raise _invalid(name, "ends before its samples")


def write_samples(samples: Array, rate: int) -> bytes:
    """Returns a WAV file of one channel with 16 bits a sample; what exceeds -1 and 1 is clipped.

    Raises:
        MediaInvalidError: the samples are not one row of finite numbers, or the rate is not one.
    """
    if samples.ndim != 1 or samples.dtype.kind not in "fi":
        raise MediaInvalidError("samples must be one row of numbers, float or int16")
    if not 0 < rate <= AUDIO_RATE:
        raise MediaInvalidError(f"a rate of {shown(rate)} is outside 1 to {AUDIO_RATE}")
    if samples.dtype.kind == "f":
        if not np.isfinite(samples).all():
            raise MediaInvalidError("samples must be finite; some are not a number or infinite")
        scaled = np.clip(np.rint(samples.astype(np.float64) * 32768), -32768, 32767).astype("<i2")
    elif samples.dtype == np.int16:
        scaled = samples.astype("<i2")
    else:
        raise MediaInvalidError(f"samples of type {samples.dtype} have no known scale")
    body = scaled.tobytes()
    return b"".join(
        (
            struct.pack("<4sI4s", b"RIFF", 36 + len(body), b"WAVE"),
            _CHUNK_HEAD.pack(b"fmt ", _FORMAT.size),
            _FORMAT.pack(_PCM, 1, rate, rate * 2, 2, 16),
            _CHUNK_HEAD.pack(b"data", len(body)),
            body,
        )
    )


def _format(chunk: memoryview, name: str) -> _Format:
    if chunk.nbytes < _FORMAT.size:
        raise _invalid(name, "has a format that is too short")
    tag, channels, rate, _, frame_bytes, bits = _FORMAT.unpack_from(chunk)
    if tag == _EXTENSIBLE:
        if chunk.nbytes < _FORMAT.size + _FORMAT_EXTENSION.size:
            raise _invalid(name, "has a format that is too short")
        _, _, _, tag, suffix = _FORMAT_EXTENSION.unpack_from(chunk, _FORMAT.size)
        if suffix != _EXTENSIBLE_SUFFIX:
            raise _invalid(name, "has samples of an unknown coding")
    if (tag, bits) not in _CODINGS:
        held = _OTHER_CODINGS.get(tag, f"{bits}-bit samples of coding {tag:#06x}")
        raise _invalid(name, f"holds {held}, which is not read")
    if not 0 < channels <= AUDIO_CHANNELS:
        raise _invalid(name, f"says that it has {channels} channels, not 1 to {AUDIO_CHANNELS}")
    if not 0 < rate <= AUDIO_RATE:
        raise _invalid(name, f"says that its rate is {rate}, not 1 to {AUDIO_RATE}")
    coding = _Format(tag, channels, rate, bits)
    if frame_bytes != coding.frame_bytes:
        raise _invalid(name, "contradicts itself about the size of a sample")
    return coding


def _samples(rest: memoryview, size: int, coding: _Format, name: str) -> Wave:
    if size == _UNKNOWN_SIZE:
        size = rest.nbytes - rest.nbytes % coding.frame_bytes
    if size > rest.nbytes:
        raise _invalid(name, f"is cut off: {rest.nbytes} bytes of samples are there of {size}")
    if size % coding.frame_bytes:
        raise _invalid(name, "ends inside a sample")
    if size == 0:
        raise _invalid(name, "has no samples")
    with np.errstate(over="ignore", invalid="ignore"):
        samples = _scaled(rest[:size], coding)
        if coding.channels > 1:
            samples = samples.reshape(-1, coding.channels).mean(axis=1, dtype=np.float32)
    if not np.isfinite(samples).all():
        raise _invalid(name, "has samples that are not a number or infinite")
    return Wave(samples, coding.rate)


def _scaled(raw: memoryview, coding: _Format) -> Array:
    if coding.tag == _FLOAT:
        return np.frombuffer(raw, f"<f{coding.bits // 8}").astype(np.float32)
    if coding.bits == 8:  # noqa: PLR2004 - the one size that WAV stores without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
    if coding.bits == 24:  # noqa: PLR2004 - the one size that numpy has no type for
        wide = np.zeros((raw.nbytes // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        numbers: Array = wide.reshape(-1).view("<i4")
        return numbers.astype(np.float32) / np.float32(1 << 31)
    numbers = np.frombuffer(raw, f"<i{coding.bits // 8}")
    return numbers.astype(np.float32) / np.float32(1 << (coding.bits - 1))


def _invalid(name: str, problem: str) -> MediaInvalidError:
    return MediaInvalidError(f"{name} {problem}; {_REMEDY}")
