"""WAV files as samples: read with every header doubted, written as 16-bit PCM."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.client.given import shown
from stagewire.client.pcm import CODINGS, PCM, Coding, decoded
from stagewire.client.sound import BLOCK_SAMPLES, Wave, check_form, check_length, damaged, mixed
from stagewire.errors import MediaInvalidError
from stagewire.limits import AUDIO_RATE
from stagewire.tensor import Array

_EXTENSIBLE: Final = 0xFFFE
_OTHER_CODINGS: Final = {
    0x0002: "ADPCM",
    0x0011: "IMA ADPCM",
    0x0031: "GSM",
    0x0050: "MPEG audio",
    0x0055: "MP3",
    0x0161: "WMA",
    0x2000: "AC-3",
}
_EXTENSIBLE_SUFFIX: Final = bytes.fromhex("000000001000800000aa00389b71")
_UNKNOWN_SIZES: Final = 0x7FFF_F000
"""Programs that cannot seek back write such sizes, this or more: the samples go on to the end of
the file. No file that is read is so long."""
_LARGEST_SIZE: Final = 0xFFFF_FFFF
_RIFF_HEAD: Final = 12
_CHUNK_HEAD: Final = struct.Struct("<4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
_FORMAT_EXTENSION: Final = struct.Struct("<HHIH14s")
_LONG_SIZES: Final = struct.Struct("<QQ")
_PRINTABLE: Final = range(0x20, 0x7F)


@dataclass(slots=True)
class _Chunks:
    """What was found on the way through a file."""

    coding: "Coding | None" = None
    data: "memoryview | None" = None
    long_size: "int | None" = None
    """Size of the samples in the form for more than 4 GiB."""
    is_open: bool = False
    """Whether the samples go on to the end of the file, which may be inside one."""


def read_wave(raw: "memoryview | bytes", name: str) -> Wave:
    """Returns the samples of a WAV file between -1 and 1, its channels mixed into one.

    Raises:
        MediaInvalidError: it is damaged, empty, or of a coding that is not read.
    """
    chunks = _walk(memoryview(raw), name)
    if chunks.data is None:
        raise damaged(name, "ends before its samples")
    if chunks.coding is None:
        raise damaged(name, "has samples and does not say their format")
    coding, data = chunks.coding, chunks.data
    excess = data.nbytes % coding.frame_bytes
    if excess and not chunks.is_open:
        raise damaged(name, "ends inside a sample")
    data = data[: data.nbytes - excess]
    check_length(data.nbytes // coding.frame_bytes, name)
    return mixed(_blocks(data, coding), coding.rate, name)


def write_samples(samples: Array, rate: int) -> bytes:
    """Returns a WAV file of one channel with 16 bits a sample; what exceeds -1 and 1 is clipped.

    Raises:
        MediaInvalidError: the samples are not one row of finite numbers, or the rate is not one.
    """
    if not isinstance(samples, np.ndarray) or samples.ndim != 1 or samples.dtype.kind not in "fi":
        raise MediaInvalidError("samples must be one row of numbers, float or int16")
    if not 0 < rate <= AUDIO_RATE:
        raise MediaInvalidError(f"a rate of {shown(rate)} is outside 1 to {AUDIO_RATE}")
    if samples.size * 2 > _LARGEST_SIZE - 36:
        raise MediaInvalidError(f"{samples.size} samples do not fit a WAV file; cut them")
    if samples.dtype.kind == "f":
        if not np.isfinite(samples).all():
            raise MediaInvalidError("samples must be finite; some are not a number or infinite")
        scaled = np.clip(np.rint(samples.astype(np.float64) * 32768), -32768, 32767).astype("<i2")
    elif samples.dtype == np.int16:
        scaled = samples.astype("<i2")
    else:
        raise MediaInvalidError(
            f"samples of type {samples.dtype} have no known scale; make them float or int16"
        )
    body = scaled.tobytes()
    return b"".join(
        (
            struct.pack("<4sI4s", b"RIFF", 36 + len(body), b"WAVE"),
            _CHUNK_HEAD.pack(b"fmt ", _FORMAT.size),
            _FORMAT.pack(PCM, 1, rate, rate * 2, 2, 16),
            _CHUNK_HEAD.pack(b"data", len(body)),
            body,
        )
    )


def _walk(view: memoryview, name: str) -> _Chunks:
    chunks = _Chunks()
    position = _RIFF_HEAD
    while position + _CHUNK_HEAD.size <= view.nbytes:
        kind, size = _CHUNK_HEAD.unpack_from(view, position)
        start = position + _CHUNK_HEAD.size
        if kind == b"data":
            known_size = _data_size(view, start, size, chunks, name)
            chunks.data = view[start:] if known_size is None else view[start : start + known_size]
            if known_size is None:
                break
            size = known_size
        elif chunks.data is not None and not _is_chunk(view, position):
            _check_rest(view, position, name)
            break
        elif start + size > view.nbytes:
            raise damaged(name, "ends inside its header")
        elif kind == b"fmt ":
            _keep_format(chunks, _format(view[start : start + size], name), name)
        elif kind == b"ds64" and size >= _LONG_SIZES.size:
            _, chunks.long_size = _LONG_SIZES.unpack_from(view, start)
        position = _after(view, start + size, is_odd=size % 2 == 1)
    return chunks


def _keep_format(chunks: _Chunks, coding: Coding, name: str) -> None:
    if chunks.coding not in (None, coding):
        raise damaged(name, "contradicts itself about the format of its samples")
    chunks.coding = coding


def _data_size(view: memoryview, start: int, size: int, chunks: _Chunks, name: str) -> "int | None":
    """Returns the size of the samples; None when the header leaves it open."""
    if chunks.data is not None:
        raise damaged(name, "has its samples in several pieces")
    if size == _LARGEST_SIZE and chunks.long_size is not None:
        size = chunks.long_size
    if size >= _UNKNOWN_SIZES or (size == 0 and not _is_list_of_chunks(view, start)):
        if chunks.coding is None:
            raise damaged(name, "has its samples before their format")
        chunks.is_open = True
        return None
    there = view.nbytes - start
    if size > there:
        raise damaged(name, f"is cut off: {there} bytes of samples are there of {size}")
    return size


def _after(view: memoryview, end: int, *, is_odd: bool) -> int:
    """Returns where the next chunk begins: at an even place, which some programs forget."""
    if is_odd and end < view.nbytes and view[end] and _is_chunk(view, end):
        return end
    return end + is_odd


def _is_chunk(view: memoryview, position: int) -> bool:
    """Whether a chunk may begin here: its name is four characters, its end inside the file."""
    if position + _CHUNK_HEAD.size > view.nbytes:
        return False
    kind, size = _CHUNK_HEAD.unpack_from(view, position)
    is_name = all(byte in _PRINTABLE for byte in kind)
    return is_name and position + _CHUNK_HEAD.size + size <= view.nbytes


def _is_list_of_chunks(view: memoryview, position: int) -> bool:
    """Whether nothing but chunks follows, to the end; samples hardly ever look like that."""
    while position < view.nbytes:
        if not _is_chunk(view, position):
            return False
        size = _CHUNK_HEAD.unpack_from(view, position)[1]
        position = _after(view, position + _CHUNK_HEAD.size + size, is_odd=size % 2 == 1)
    return True


def _check_rest(view: memoryview, position: int, name: str) -> None:
    """Checks what follows the samples and is no chunk: the file may say that it is part of it.

    Otherwise something was appended, or the size of the whole was never written.
    """
    whole = 8 + int.from_bytes(view[4:8], "little")
    is_inside = position + _CHUNK_HEAD.size < whole <= view.nbytes
    is_damaged_chunk = all(byte in _PRINTABLE for byte in view[position : position + 4])
    if is_inside and not is_damaged_chunk and bytes(view[position:whole]).strip(b"\0"):
        raise damaged(name, f"says that its samples end at byte {position}, and goes on after that")


def _format(chunk: memoryview, name: str) -> Coding:
    if chunk.nbytes < _FORMAT.size:
        raise damaged(name, "has a format that is too short")
    tag, channels, rate, _, frame_bytes, bits = _FORMAT.unpack_from(chunk)
    if tag == _EXTENSIBLE:
        if chunk.nbytes < _FORMAT.size + _FORMAT_EXTENSION.size:
            raise damaged(name, "has a format that is too short")
        _, valid_bits, _, tag, suffix = _FORMAT_EXTENSION.unpack_from(chunk, _FORMAT.size)
        if suffix != _EXTENSIBLE_SUFFIX:
            raise damaged(name, "has samples of an unknown coding")
        # Fewer bits stand in the upper ones of their space: the scale is that of the space.
        if valid_bits > bits:
            raise damaged(name, f"says that {valid_bits} bits of {bits} are valid")
    check_form(channels, rate, name)
    if (tag, bits) not in CODINGS:
        held = _OTHER_CODINGS.get(tag, f"{bits}-bit samples of coding {tag:#06x}")
        raise damaged(name, f"holds {held}, which is not read")
    coding = Coding(tag, channels, rate, bits)
    if frame_bytes != coding.frame_bytes:
        raise damaged(name, "contradicts itself about the size of a sample")
    return coding


def _blocks(data: memoryview, coding: Coding) -> Iterator[Array]:
    step = max(1, BLOCK_SAMPLES // coding.channels) * coding.frame_bytes
    for start in range(0, data.nbytes, step):
        yield decoded(data[start : start + step], coding)
