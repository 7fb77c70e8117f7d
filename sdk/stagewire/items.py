"""Items between values and wire: values cut into chunks, and put together again."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stagewire.chunks import Chunk, ChunkOrder, chunks_of, payload_of
from stagewire.descriptor import TensorDescriptor
from stagewire.errors import PayloadCorruptError
from stagewire.tensor import Value, decode, encode
from stagewire.v1 import tensor_pb2 as pb


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """A whole item."""

    port: str
    sequence: int
    epoch: int
    descriptor: TensorDescriptor
    payload: memoryview

    def value(self) -> Value:
        """Returns the value as a read-only view of the payload.

        Raises:
            PayloadCorruptError: the payload does not have the form that the descriptor says.
        """
        return decode(self.descriptor, self.payload)


def to_chunks(port: str, sequence: int, value: Value, *, epoch: int = 0) -> Iterator[Chunk]:
    """Cuts one value into its messages, without copying it.

    Raises:
        FieldInvalidError: the value has no element type of the wire.
        MessageTooBigError: the value is over a limit.
    """
    descriptor, payload = encode(value)
    return chunks_of(port, sequence, descriptor, payload, epoch=epoch)


class Assembler:
    """Puts the chunks of one port together."""

    __slots__ = ("_buffer", "_order")

    def __init__(self, port: str) -> None:
        self._order = ChunkOrder(port)
        self._buffer: memoryview | None = None

    def accept(self, item: pb.Item, payload: memoryview) -> ReceivedItem | None:
        """Takes the next chunk; returns the item when it is whole.

        A tensor of one chunk is a view of the message; a larger one is copied once into its place.

        Raises:
            FieldInvalidError: the descriptor is missing or contradicts itself.
            MessageTooBigError: the tensor is over a limit.
            PayloadCorruptError: the chunk is damaged, or not the one that must follow.
        """
        piece = payload_of(item, payload)
        offset = item.chunk_offset_bytes
        descriptor, is_whole = self._order.accept(item)
        if item.HasField("checksum") and zlib.crc32(piece) != item.checksum:
            raise PayloadCorruptError(f"a chunk on port {item.port!r} has a wrong checksum")
        if offset == 0 and is_whole:
            return ReceivedItem(item.port, item.sequence, item.epoch, descriptor, piece)
        if self._buffer is None:
            # Memory that is not touched before its bytes are there: a first chunk may claim a lot.
            self._buffer = np.empty(descriptor.size_bytes, np.uint8).data
        self._buffer[offset : offset + piece.nbytes] = piece
        if not is_whole:
            return None
        whole, self._buffer = self._buffer, None
        return ReceivedItem(item.port, item.sequence, item.epoch, descriptor, whole)

    @property
    def is_between_items(self) -> bool:
        """Whether no item has begun that is not whole."""
        return self._order.is_between_items
