"""Ports: what may pass through a named input or output, and the check of one item against it."""

from dataclasses import dataclass

from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.tensor import DataType, TensorDescriptor
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

    def check(self, descriptor: TensorDescriptor) -> None:
        """Checks one item.

        Raises:
            TensorMismatchError: type, rank or an extent differs; the message names both sides.
        """
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
