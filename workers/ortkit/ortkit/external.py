"""Which other files an ONNX file refers to, read from its bytes without the `onnx` package.

ONNX Runtime opens such files by itself. They are only allowed when they are files of the same
artifact, because only those were verified.
"""

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from stagewire.errors import FormatUnsupportedError, PathForbiddenError

Span: TypeAlias = tuple[int, int]
"""First byte and first byte after."""

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5
_NESTING: Final = 64
"""Deepest nesting of graphs that is followed."""

# Fields by number that lead from a message to the tensors in it, by the kind of message.
# ModelProto 7 graph, 20 training_info, 25 functions; GraphProto 1 node, 5 initializer,
# 15 sparse_initializer; NodeProto 5 attribute; AttributeProto 5 t, 6 g, 10 tensors, 11 graphs,
# 22 sparse_tensor, 23 sparse_tensors; SparseTensorProto 1 values, 2 indices; FunctionProto 7 node,
# 11 attribute_proto; TrainingInfoProto 1 initialization, 2 algorithm.
_CHILDREN: Final[Mapping[str, Mapping[int, str]]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse",
        23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
}
_EXTERNAL_DATA: Final = 13
"""Field of TensorProto: key and value pairs."""


def check_external_files(model: Path, files: Mapping[str, Path]) -> tuple[Path, ...]:
    """Returns the other files that a model refers to, each of which is a file of its artifact.

    Raises:
        FormatUnsupportedError: the file is not an ONNX model.
        PathForbiddenError: it refers to a file that is not part of the artifact.
    """
    allowed = {path.resolve() for path in files.values()}
    found: dict[Path, None] = {}
    for location in external_locations(model):
        target = (model.parent / location).resolve()
        if PurePosixPath(location).is_absolute() or target not in allowed:
            raise PathForbiddenError(
                f"{model.name} keeps weights in {location!r}, which is not a file of its artifact;"
                " list that file in the plan, or export the model into one file"
            )
        found[target] = None
    return tuple(found)


def external_locations(model: Path) -> tuple[str, ...]:
    """Returns the locations of external data in the order of the file, each once.

    Raises:
        FormatUnsupportedError: the file is not an ONNX model.
    """
    with model.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise FormatUnsupportedError(f"{model.name} is empty, not an ONNX model") from None
        with mapped:
            try:
                return tuple(dict.fromkeys(_locations(mapped, "model", (0, len(mapped)), 0)))
            except (IndexError, UnicodeDecodeError):
                raise FormatUnsupportedError(f"{model.name} is not an ONNX model") from None


def _locations(data: mmap.mmap, kind: str, span: Span, depth: int) -> Iterator[str]:
    if depth > _NESTING:
        raise FormatUnsupportedError("the graphs of an ONNX model are nested too deeply")
    children = _CHILDREN.get(kind, {})
    for number, field in _fields(data, span):
        if kind == "tensor":
            if number == _EXTERNAL_DATA:
                pair = {key: data[slice(*part)] for key, part in _fields(data, field)}
                if pair.get(1) == b"location":
                    yield pair.get(2, b"").decode()
        elif number in children:
            yield from _locations(data, children[number], field, depth + 1)


def _fields(data: mmap.mmap, span: Span) -> Iterator[tuple[int, Span]]:
    """Yields number and bytes of each length-delimited field; others are stepped over."""
    position, end = span
    while position < end:
        key, position = _varint(data, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, position = _varint(data, position)
        elif wire_type == _FIXED64:
            position += 8
        elif wire_type == _FIXED32:
            position += 4
        elif wire_type == _LENGTH:
            size, position = _varint(data, position)
            if size > end - position:
                raise IndexError
            yield key >> 3, (position, position + size)
            position += size
        else:
            raise IndexError
    if position != end:
        raise IndexError


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit of a varint
            return value, position
        shift += 7
        if shift > 63:  # noqa: PLR2004 - a varint has at most ten bytes
            raise IndexError
