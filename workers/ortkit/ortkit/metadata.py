"""What the maker of an ONNX file wrote into it beside the graph, such as a list of characters."""

from pathlib import Path
from typing import Final

from ortkit.protobuf import fields, mapped

_METADATA: Final = 14
"""Field of ModelProto: key and value pairs."""


def read_metadata(model: Path) -> dict[str, str]:
    """Returns the texts of a model by their keys, without opening a session.

    Raises:
        FormatUnsupportedError: the file is not an ONNX model.
    """
    found: dict[str, str] = {}
    with mapped(model) as content:
        for number, entry in fields(content, (0, len(content))):
            if number == _METADATA:
                pair = {key: content[slice(*part)].decode() for key, part in fields(content, entry)}
                found[pair.get(1, "")] = pair.get(2, "")
    return found
