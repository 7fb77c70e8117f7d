"""Which other files an ONNX file refers to.

ONNX Runtime opens such files by itself. They are only allowed when they are files of the same
artifact, because only those were verified.
"""

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from ortkit.protobuf import Span, fields, mapped
from stagewire.errors import FormatUnsupportedError, PathForbiddenError

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
    with mapped(model) as content:
        return tuple(dict.fromkeys(_locations(content, "model", (0, len(content)), 0)))


def _locations(content: mmap.mmap, kind: str, span: Span, depth: int) -> Iterator[str]:
    if depth > _NESTING:
        raise FormatUnsupportedError("the graphs of an ONNX model are nested too deeply")
    children = _CHILDREN.get(kind, {})
    for number, field in fields(content, span):
        if kind == "tensor":
            if number == _EXTERNAL_DATA:
                pair = {key: content[slice(*part)] for key, part in fields(content, field)}
                if pair.get(1) == b"location":
                    yield pair.get(2, b"").decode()
        elif number in children:
            yield from _locations(content, children[number], field, depth + 1)
