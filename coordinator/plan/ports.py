"""Ports as a plan spells them: references, extents, sizes and which may be connected."""

import re
from dataclasses import dataclass

from coordinator.facts.ids import PortId, StageId
from coordinator.facts.ports import DataTypeName, Extent, PortType
from stagewire.limits import STRING_ELEMENTS, TENSOR_BYTES, TENSOR_DIMENSION, TENSOR_RANK

PORT_NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,63}$"
"""Form of the ids of stages and ports; without a dot, which divides them in `stage.port`."""
PORT_REF_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}$"
EXTENT_PATTERN = "^[a-z][a-z0-9_]{0,31} ?<= ?[1-9][0-9]{0,12}$"

_EXTENT = re.compile(r"([a-z][a-z0-9_]{0,31}) ?<= ?([1-9][0-9]{0,12})")
# Of an element as a number: one of four bits stands alone in a byte wherever it is computed with.
_ELEMENT_BYTES = {
    DataTypeName.BOOL: 1,
    DataTypeName.INT8: 1,
    DataTypeName.UINT8: 1,
    DataTypeName.INT4: 1,
    DataTypeName.UINT4: 1,
    DataTypeName.FLOAT8_E4M3FN: 1,
    DataTypeName.FLOAT8_E5M2: 1,
    DataTypeName.INT16: 2,
    DataTypeName.UINT16: 2,
    DataTypeName.FLOAT16: 2,
    DataTypeName.BFLOAT16: 2,
    DataTypeName.INT32: 4,
    DataTypeName.UINT32: 4,
    DataTypeName.FLOAT32: 4,
    DataTypeName.INT64: 8,
    DataTypeName.UINT64: 8,
    DataTypeName.FLOAT64: 8,
}


@dataclass(frozen=True, slots=True, order=True)
class PortRef:
    """One port of one stage."""

    stage: StageId
    port: PortId

    def __str__(self) -> str:
        return f"{self.stage}.{self.port}"


def parse_port_ref(text: str) -> PortRef:
    """Returns the port that `stage.port` names.

    Raises:
        ValueError: the text has another form.
    """
    if re.fullmatch(PORT_REF_PATTERN, text) is None:
        raise ValueError("does not name a port; write stage.port")
    stage, port = text.split(".")
    return PortRef(StageId(stage), PortId(port))


def parse_extent(value: object) -> Extent:
    """Returns the extent of a dimension: a whole number, or `name<=N` for one that varies.

    Raises:
        ValueError: the value has another form or is out of range.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        extent = Extent("", value)
    elif isinstance(value, str) and (match := _EXTENT.fullmatch(value)):
        extent = Extent(match[1], int(match[2]))
    else:
        raise ValueError(
            "is not an extent; write a whole number or name<=N, such as samples<=480000"
        )
    if not 1 <= extent.max_extent <= TENSOR_DIMENSION:
        raise ValueError(f"is out of range; an extent is 1 to {TENSOR_DIMENSION}")
    return extent


def check_port_type(port_type: PortType) -> None:
    """Checks that the largest item of a port keeps the limits of tensors.

    Raises:
        ValueError: it has too many dimensions, bytes or strings.
    """
    if len(port_type.extents) > TENSOR_RANK:
        raise ValueError(f"has {len(port_type.extents)} dimensions; {TENSOR_RANK} are allowed")
    elements = 1
    for extent in port_type.extents:
        elements *= extent.max_extent
    element_bytes = _ELEMENT_BYTES.get(port_type.data_type)
    if element_bytes is None and elements > STRING_ELEMENTS:
        raise ValueError(f"may hold {elements} strings; {STRING_ELEMENTS} are allowed")
    if element_bytes is not None and elements * element_bytes > TENSOR_BYTES:
        raise ValueError(
            f"may take {elements * element_bytes} bytes an item; {TENSOR_BYTES} are allowed"
        )


def why_not_connectable(source: PortType, target: PortType) -> tuple[str, str] | None:
    """Returns why items of one port may not enter the other and what to change, or None."""
    if source.data_type is not target.data_type or len(source.extents) != len(target.extents):
        return "their types differ", "make both ports the same type, or add a stage that converts"
    for number, (given, taken) in enumerate(zip(source.extents, target.extents, strict=True)):
        if not taken.name and (given.name or given.max_extent != taken.max_extent):
            return f"dimension {number} must be {taken}, not {given}", "declare the same extent"
        if given.max_extent > taken.max_extent:
            return (
                f"dimension {number} may reach {given.max_extent}, above {taken.max_extent}",
                "lower the bound of the output or raise that of the input",
            )
    if source.is_stream and not target.is_stream:
        return "a stream enters a port that takes one item", "declare stream: true at the input"
    return None
