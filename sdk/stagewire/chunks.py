"""The messages of an item: cut from bytes, checked for their order, passed on without being read.

Two transports behind one interface: `inline` for a tensor up to 64 KiB, `chunked` for a larger one.
Which one an item takes follows from its size alone, so both ends agree without a word.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from stagewire.descriptor import DataType, TensorDescriptor, check_descriptor
from stagewire.errors import FieldInvalidError, PayloadCorruptError
from stagewire.limits import CHUNK_BYTES, INLINE_BYTES
from stagewire.v1 import tensor_pb2 as pb


@dataclass(frozen=True, slots=True)
class Chunk:
    """One wire message of an item, and the payload that it will point into."""

    item: pb.Item
    payload: memoryview


def transport_of(size_bytes: int) -> str:
    """Returns the name of the transport that a tensor of this size takes."""
    return "inline" if size_bytes <= INLINE_BYTES else "chunked"


def chunks_of(
    port: str, sequence: int, descriptor: TensorDescriptor, payload: memoryview, *, epoch: int = 0
) -> Iterator[Chunk]:
    """Cuts an encoded tensor into its messages, without copying it."""
    first = to_message(descriptor)
    if descriptor.size_bytes <= INLINE_BYTES:
        yield Chunk(
            pb.Item(
                port=port,
                sequence=sequence,
                epoch=epoch,
                tensor=first,
                payload_size_bytes=payload.nbytes,
            ),
            payload,
        )
        return
    for offset in range(0, payload.nbytes, CHUNK_BYTES):
        piece = payload[offset : offset + CHUNK_BYTES]
        yield Chunk(
            pb.Item(
                port=port,
                sequence=sequence,
                epoch=epoch,
                tensor=first if offset == 0 else None,
                chunk_offset_bytes=offset,
                payload_size_bytes=piece.nbytes,
                checksum=zlib.crc32(piece),
            ),
            piece,
        )


def whole_item(
    port: str, sequence: int, descriptor: TensorDescriptor, payload: memoryview, offset_bytes: int
) -> pb.Item:
    """Describes an item that lies whole in the payload of its message, as in `Run`."""
    return pb.Item(
        port=port,
        sequence=sequence,
        tensor=to_message(descriptor),
        payload_offset_bytes=offset_bytes,
        payload_size_bytes=payload.nbytes,
        checksum=None if descriptor.size_bytes <= INLINE_BYTES else zlib.crc32(payload),
    )


def to_message(descriptor: TensorDescriptor) -> pb.TensorDescriptor:
    """Returns the wire form of a descriptor."""
    return pb.TensorDescriptor(
        data_type=int(descriptor.data_type),  # type: ignore[arg-type] # the numbers are the same
        shape=descriptor.shape,
        size_bytes=descriptor.size_bytes,
    )


def descriptor_of(item: pb.Item) -> TensorDescriptor:
    """Returns the checked descriptor of the first chunk of an item.

    Raises:
        FieldInvalidError: there is none, or it contradicts itself.
        MessageTooBigError: the tensor is over a limit.
    """
    if not item.HasField("tensor"):
        raise FieldInvalidError(f"the first chunk of an item on {item.port!r} has no descriptor")
    if item.tensor.data_type not in DataType._value2member_map_:
        raise FieldInvalidError(f"an item on {item.port!r} has no element type")
    descriptor = TensorDescriptor(
        DataType(item.tensor.data_type), tuple(item.tensor.shape), item.tensor.size_bytes
    )
    check_descriptor(descriptor)
    return descriptor


def payload_of(item: pb.Item, payload: memoryview) -> memoryview:
    """Returns the part of a message's payload that one of its items points at.

    Raises:
        PayloadCorruptError: the item points outside the payload.
    """
    end = item.payload_offset_bytes + item.payload_size_bytes
    if end > payload.nbytes:
        raise PayloadCorruptError("an item points outside the payload of its message")
    return payload[item.payload_offset_bytes : end]


class ChunkOrder:
    """Checks that the chunks of one port follow one another; holds no payload.

    The coordinator forwards chunks by this check alone, so a large tensor never gathers in it.
    """

    __slots__ = ("descriptor", "filled_bytes", "items", "port")

    def __init__(self, port: str) -> None:
        self.port = port
        self.items = 0
        self.descriptor: TensorDescriptor | None = None
        self.filled_bytes = 0

    def accept(self, item: pb.Item) -> tuple[TensorDescriptor, bool]:
        """Takes the next chunk; returns its tensor's descriptor and whether that is now whole.

        Raises:
            FieldInvalidError: the descriptor is missing or contradicts itself.
            MessageTooBigError: the tensor is over a limit.
            PayloadCorruptError: the chunk is not the one that must follow.
        """
        if self.descriptor is None:
            self.descriptor = descriptor_of(item)
        descriptor = self.descriptor
        if item.sequence != self.items or item.chunk_offset_bytes != self.filled_bytes:
            raise PayloadCorruptError(
                f"port {self.port!r} got item {item.sequence} at byte {item.chunk_offset_bytes};"
                f" item {self.items} at byte {self.filled_bytes} must follow"
            )
        self.filled_bytes += item.payload_size_bytes
        is_chunked = descriptor.size_bytes > INLINE_BYTES
        if self.filled_bytes > descriptor.size_bytes or (
            self.filled_bytes < descriptor.size_bytes
            and not (is_chunked and item.payload_size_bytes)
        ):
            raise PayloadCorruptError(
                f"port {self.port!r} got {self.filled_bytes} bytes of a tensor of"
                f" {descriptor.size_bytes}"
            )
        if is_chunked and not item.HasField("checksum"):
            raise PayloadCorruptError(f"a chunk on port {self.port!r} has no checksum")
        is_whole = self.filled_bytes == descriptor.size_bytes
        if is_whole:
            self.items += 1
            self.descriptor = None
            self.filled_bytes = 0
        return descriptor, is_whole

    @property
    def is_between_items(self) -> bool:
        """Whether no item has begun that is not whole."""
        return self.descriptor is None
