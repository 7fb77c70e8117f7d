"""Inputs and outputs of a graph, and whether a stage's ports fit them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.errors import TensorMismatchError
from stagewire.ports import Port
from stagewire.tensor import DataType, Value, data_type_of
from stagewire.worker.executor import StageOrder

ELEMENT_TYPES: Final = {
    "tensor(bool)": DataType.BOOL,
    "tensor(int8)": DataType.INT8,
    "tensor(int16)": DataType.INT16,
    "tensor(int32)": DataType.INT32,
    "tensor(int64)": DataType.INT64,
    "tensor(uint8)": DataType.UINT8,
    "tensor(uint16)": DataType.UINT16,
    "tensor(uint32)": DataType.UINT32,
    "tensor(uint64)": DataType.UINT64,
    "tensor(float16)": DataType.FLOAT16,
    "tensor(float)": DataType.FLOAT32,
    "tensor(double)": DataType.FLOAT64,
    "tensor(string)": DataType.UTF8,
}
"""Spelling of ONNX Runtime to element type; what is missing cannot pass the binding."""


@dataclass(frozen=True, slots=True)
class GraphPort:
    """One input or output of a graph."""

    name: str
    data_type: DataType | None
    """None for a type that no port can carry, such as a sequence."""
    type_name: str
    """ONNX Runtime's own spelling."""
    shape: tuple[int | str, ...]
    """Extents: fixed ones as numbers, variable ones by name, which may be empty."""


def check_fed(port: GraphPort, value: Value) -> None:
    """Checks an item before it enters a graph, whose library would refuse it in words of its own.

    Raises:
        TensorMismatchError: it does not have the type or the shape of the graph's input.
    """
    data_type = data_type_of(value)
    if port.data_type is not None and data_type is not port.data_type:
        raise TensorMismatchError(
            f"input {port.name!r} of the graph is {port.data_type.spelling};"
            f" the item is {data_type.spelling}",
            port=port.name,
        )
    shape = np.shape(value)
    fits = len(shape) == len(port.shape) and all(
        isinstance(wanted, str) or wanted == extent
        for wanted, extent in zip(port.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(extent) or "any" for extent in port.shape)
        raise TensorMismatchError(
            f"input {port.name!r} of the graph has the shape [{wanted}];"
            f" the item has {list(shape)}",
            port=port.name,
        )


def check_order(
    order: StageOrder, inputs: Sequence[GraphPort], outputs: Sequence[GraphPort]
) -> None:
    """Checks that a stage's ports are the graph's inputs and some of its outputs.

    Raises:
        TensorMismatchError: a name, type, rank or fixed extent differs.
    """
    _check_names(order, "input", order.inputs, inputs)
    _check_names(order, "output", order.outputs, outputs)
    for missing in {port.name for port in inputs} - {port.name for port in order.inputs}:
        raise _mismatch(order, f"the graph needs the input {missing!r}; add it", missing)
    if not order.outputs:
        raise _mismatch(order, "it has no output; name at least one of the graph's", "")
    graph_ports = {("input", port.name): port for port in inputs}
    graph_ports |= {("output", port.name): port for port in outputs}
    for side, ports in (("input", order.inputs), ("output", order.outputs)):
        for port in ports:
            problem = _problem(port, graph_ports[side, port.name], is_input=side == "input")
            if problem:
                raise _mismatch(order, f"{side} {port.name!r} {problem}", port.name)


def _check_names(
    order: StageOrder, side: str, ports: Sequence[Port], graph: Sequence[GraphPort]
) -> None:
    known = {port.name for port in graph}
    for port in ports:
        if port.name not in known:
            raise _mismatch(
                order,
                f"the graph has no {side} {port.name!r}; it has {', '.join(sorted(known))}",
                port.name,
            )


def _problem(port: Port, graph: GraphPort, *, is_input: bool) -> str:
    if graph.data_type is None:
        return f"is {graph.type_name} in the graph, which no port can carry"
    if port.data_type is not graph.data_type:
        return f"is {port.data_type.spelling}; the graph has {graph.data_type.spelling}"
    if len(port.dimensions) != len(graph.shape):
        return f"has {len(port.dimensions)} dimensions; the graph has {len(graph.shape)}"
    for index, (dimension, extent) in enumerate(zip(port.dimensions, graph.shape, strict=True)):
        if isinstance(extent, str):
            continue
        is_fixed = not dimension.name
        fits = dimension.max_extent == extent if is_fixed else dimension.max_extent >= extent
        # An input that may vary would be refused by the graph at every other extent.
        if not fits or (is_input and not is_fixed):
            return f"must have the extent {extent} in dimension {index}"
    return ""


def _mismatch(order: StageOrder, problem: str, port: str) -> TensorMismatchError:
    return TensorMismatchError(
        f"stage {order.stage_id}: {problem}", stage=order.stage_id, port=port
    )
