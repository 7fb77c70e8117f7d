"""Ports: what may pass through a named input or output, and the check of one item against it."""

import math
from dataclasses import dataclass

from stagewire.descriptor import DataType, TensorDescriptor, elements_bytes, string_lengths_bytes
from stagewire.errors import FieldInvalidError, MessageTooBigError, TensorMismatchError
from stagewire.limits import STRING_ELEMENTS, TEXT_BYTES, WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import tensor_pb2 as pb


@dataclass(frozen=True, slots=True)
class Dimension:
    """Extent that one dimension may have: fixed when `name` is empty, else at most `max_extent`."""

    name: str
    max_extent: int

    def __str__(self) -> str:
        return f"{self.name}<={self.max_extent}" if self.name else str(self.max_extent)


@dataclass(frozen=True, slots=True)
class Port:
    """Rules that the items of one port satisfy."""

    name: str
    data_type: DataType
    dimensions: tuple[Dimension, ...] = ()
    is_stream: bool = False

    def __str__(self) -> str:
        shape = f"[{', '.join(map(str, self.dimensions))}]" if self.dimensions else ""
        return f"{'a stream of ' if self.is_stream else ''}{self.data_type.spelling}{shape}"

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest item that passes; texts have a limit of their own."""
        count = math.prod(dimension.max_extent for dimension in self.dimensions)
        if self.data_type.is_string:
            return TEXT_BYTES + string_lengths_bytes(min(count, STRING_ELEMENTS))
        return elements_bytes(self.data_type, count)

    @property
    def window_bytes(self) -> int:
        """Most that one request may have under way on an edge into this port."""
        if not self.is_stream:
            return self.largest_bytes
        # An item may leave while any credit is left, so the last one may exceed the window.
        return min(self.largest_bytes * WINDOW_ITEMS, WINDOW_BYTES + self.largest_bytes)

    def check(self, descriptor: TensorDescriptor) -> None:
        """Checks one item.

        Raises:
            MessageTooBigError: a text is over its limit.
            TensorMismatchError: type, rank or an extent differs; the message names both sides.
        """
        if descriptor.data_type.is_string and descriptor.text_bytes > TEXT_BYTES:
            what = "a text" if descriptor.data_type is DataType.UTF8 else "a byte string"
            if descriptor.shape:
                what = f"{math.prod(descriptor.shape)} strings"
            raise MessageTooBigError(
                f"port {self.name!r} got {what} of {descriptor.text_bytes} bytes, the limit is"
                f" {TEXT_BYTES}",
                port=self.name,
            )
        fits = descriptor.data_type is self.data_type and len(descriptor.shape) == len(
            self.dimensions
        )
        if fits:
            for extent, dimension in zip(descriptor.shape, self.dimensions, strict=True):
                if extent > dimension.max_extent or (
                    not dimension.name and extent != dimension.max_extent
                ):
                    fits = False
        if not fits:
            shape = list(descriptor.shape)
            raise TensorMismatchError(
                f"port {self.name!r} takes {self} and got {descriptor.data_type.spelling}{shape}",
                port=self.name,
            )


def to_message(port: Port) -> pb.PortType:
    """Returns the wire form of a port."""
    return pb.PortType(
        name=port.name,
        data_type=int(port.data_type),  # type: ignore[arg-type] # the numbers are the same
        dimensions=[
            pb.Dimension(name=item.name, max_extent=item.max_extent) for item in port.dimensions
        ],
        is_stream=port.is_stream,
    )


def from_message(message: pb.PortType) -> Port:
    """Returns the port of a wire form.

    Raises:
        FieldInvalidError: its element type is none that this version knows.
    """
    if message.data_type not in DataType._value2member_map_:
        raise FieldInvalidError(f"port {message.name!r} has no element type")
    return Port(
        message.name,
        DataType(message.data_type),
        tuple(Dimension(item.name, item.max_extent) for item in message.dimensions),
        message.is_stream,
    )
