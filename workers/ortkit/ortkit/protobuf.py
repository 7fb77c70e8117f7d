"""Fields of an ONNX file, read from its bytes without the `onnx` package.

A reader that follows a span runs into `IndexError` or `UnicodeDecodeError` where the bytes are none
of protobuf's.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from stagewire.errors import FormatUnsupportedError

Span: TypeAlias = tuple[int, int]
"""First byte and first byte after."""

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5


@contextmanager
def mapped(model: Path) -> Iterator[mmap.mmap]:
    """Maps an ONNX file; what a reader inside runs into becomes a refusal of the file.

    Raises:
        FormatUnsupportedError: the file is not an ONNX model.
    """
    with model.open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise FormatUnsupportedError(f"{model.name} is empty, not an ONNX model") from None
        with content:
            try:
                yield content
            except (IndexError, UnicodeDecodeError):
                raise FormatUnsupportedError(f"{model.name} is not an ONNX model") from None


def fields(content: mmap.mmap, span: Span) -> Iterator[tuple[int, Span]]:
    """Yields number and bytes of each length-delimited field; others are stepped over."""
    position, end = span
    while position < end:
        key, position = _varint(content, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, position = _varint(content, position)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        elif wire_type == _LENGTH:
            size, position = _varint(content, position)
            if size > end - position:
                raise IndexError
            yield key >> 3, (position, position + size)
            position += size
        else:
            raise IndexError
    if position != end:
        raise IndexError


def _varint(content: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit of a varint
            return value, position
        shift += 7
        if shift > 63:  # noqa: PLR2004 - a varint has at most ten bytes
            raise IndexError
