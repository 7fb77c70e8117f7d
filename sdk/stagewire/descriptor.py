"""Element types and shapes, and what each may be: all that is known of a tensor without its bytes.

Apart from `stagewire.tensor`, because a process that only passes tensors on needs no numpy.
"""

import enum
import math
from dataclasses import dataclass
from typing import Final

from stagewire.errors import FieldInvalidError, MessageTooBigError
from stagewire.limits import (
    STRING_ELEMENTS,
    TENSOR_BYTES,
    TENSOR_DIMENSION,
    TENSOR_RANK,
)


class DataType(enum.IntEnum):
    """Element types; the numbers are those of the wire."""

    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6
    UINT16 = 7
    UINT32 = 8
    UINT64 = 9
    FLOAT16 = 10
    BFLOAT16 = 11
    FLOAT32 = 12
    FLOAT64 = 13
    UTF8 = 14
    BYTES = 15
    FLOAT8_E4M3FN = 16
    FLOAT8_E5M2 = 17
    INT4 = 18
    UINT4 = 19

    @property
    def is_string(self) -> bool:
        """Whether elements have a length of their own."""
        return self in (DataType.UTF8, DataType.BYTES)

    @property
    def is_packed(self) -> bool:
        """Whether two elements share a byte."""
        return self in (DataType.INT4, DataType.UINT4)

    @property
    def spelling(self) -> str:
        """Name in plans, such as "float32"."""
        return self.name.lower()


_ELEMENT_BITS: Final = {
    DataType.BOOL: 8,
    DataType.INT8: 8,
    DataType.INT16: 16,
    DataType.INT32: 32,
    DataType.INT64: 64,
    DataType.UINT8: 8,
    DataType.UINT16: 16,
    DataType.UINT32: 32,
    DataType.UINT64: 64,
    DataType.FLOAT16: 16,
    DataType.BFLOAT16: 16,
    DataType.FLOAT32: 32,
    DataType.FLOAT64: 64,
    DataType.FLOAT8_E4M3FN: 8,
    DataType.FLOAT8_E5M2: 8,
    DataType.INT4: 4,
    DataType.UINT4: 4,
}
_LENGTH_BYTES: Final = 4
"""Of the length that stands before each string."""


@dataclass(frozen=True, slots=True)
class TensorDescriptor:
    """Element type, shape and byte size of a tensor, without its bytes."""

    data_type: DataType
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def text_bytes(self) -> int:
        """Bytes of its strings alone, without the length that stands before each."""
        return self.size_bytes - string_lengths_bytes(math.prod(self.shape))


def element_bits(data_type: DataType) -> int:
    """Returns the bits of one element; 0 for strings, whose elements vary."""
    return _ELEMENT_BITS.get(data_type, 0)


def elements_bytes(data_type: DataType, count: int) -> int:
    """Returns the bytes of so many elements; 0 for strings.

    The last byte of an odd number of packed elements is half used.
    """
    return (count * element_bits(data_type) + 7) // 8


def string_lengths_bytes(count: int) -> int:
    """Returns the bytes of the lengths in a tensor of so many strings."""
    return count * _LENGTH_BYTES


def check_descriptor(descriptor: TensorDescriptor) -> None:
    """Checks a descriptor that came from elsewhere, before anything is allocated for it.

    Raises:
        MessageTooBigError: the tensor is over a limit.
        FieldInvalidError: size and shape contradict each other.
    """
    if len(descriptor.shape) > TENSOR_RANK:
        raise MessageTooBigError(
            f"a tensor of rank {len(descriptor.shape)} is over the limit of {TENSOR_RANK}"
        )
    if any(extent < 0 or extent > TENSOR_DIMENSION for extent in descriptor.shape):
        raise MessageTooBigError(f"an extent of a tensor is outside 0 to {TENSOR_DIMENSION}")
    if not 0 <= descriptor.size_bytes <= TENSOR_BYTES:
        raise MessageTooBigError(
            f"a tensor of {descriptor.size_bytes} bytes is over the limit of {TENSOR_BYTES}",
            size_bytes=descriptor.size_bytes,
            limit_bytes=TENSOR_BYTES,
        )
    # Extents of zero would hide the others: numpy refuses a shape such as [0, 2**61].
    if math.prod(max(extent, 1) for extent in descriptor.shape) > TENSOR_DIMENSION:
        raise MessageTooBigError("the extents of a tensor multiply to more than its limit")
    count = math.prod(descriptor.shape)
    if descriptor.data_type.is_string:
        if count > STRING_ELEMENTS:
            raise MessageTooBigError(f"a tensor of {count} strings is over {STRING_ELEMENTS}")
        is_consistent = descriptor.text_bytes >= 0
    else:
        # Packed elements take a byte each where they are numbers, so that is what counts.
        if count > TENSOR_BYTES:
            raise MessageTooBigError(
                f"a tensor of {count} elements is over the limit of {TENSOR_BYTES}"
            )
        is_consistent = descriptor.size_bytes == elements_bytes(descriptor.data_type, count)
    if not is_consistent:
        raise FieldInvalidError(
            f"a {descriptor.data_type.spelling} tensor of shape {list(descriptor.shape)}"
            f" cannot have {descriptor.size_bytes} bytes"
        )
