"""Arrays of element types that numpy lacks: numbers where `ml_dtypes` is installed, else bits.

bfloat16, the floats of eight bits and the packed integers of four. Bits are views of what came over
the wire. As numbers an integer of four bits takes a byte, so packed ones are copied: either way in
the order of 1 ms for each MiB on the wire, and to twice its size.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stagewire.descriptor import DataType, TensorDescriptor, elements_bytes
from stagewire.errors import FieldInvalidError, PayloadCorruptError
from stagewire.rounding import SHORT_FLOATS, float_bits

Array: TypeAlias = NDArray[Any]
"""An array of any element type: the type is a run-time fact of each tensor."""

STORAGE: Final = {
    DataType.BFLOAT16: "<u2",
    DataType.FLOAT8_E4M3FN: "|u1",
    DataType.FLOAT8_E5M2: "|u1",
    DataType.INT4: "|u1",
    DataType.UINT4: "|u1",
}
"""Element types that numpy lacks, and the type of numpy that their bits stand in."""
_BY_NAME: Final = {data_type.spelling: data_type for data_type in STORAGE}
_LOW: Final = 0x0F
_HALVES: Final = np.array([[byte & _LOW, byte >> 4] for byte in range(256)], dtype=np.uint8).view(
    np.uint16
)[:, 0]
"""Both elements of each packed byte, side by side: looking them up is quicker than shifting."""


class BitsArray(np.ndarray[Any, np.dtype[Any]]):
    """The bits of a tensor whose element type numpy lacks.

    Elements of whole bytes stand in an array of the tensor's shape, of uint8 or uint16; slices and
    other views of it keep the element type. Packed elements stand in the bytes of the wire, in one
    dimension: `descriptor` has the shape of the tensor, and a view of them has no element type any
    more. What arithmetic makes of bits is an ordinary array.
    """

    _data_type: DataType | None
    _packed_shape: tuple[int, ...]

    def __new__(
        cls, bits: Array, data_type: DataType, shape: tuple[int, ...] | None = None
    ) -> "BitsArray":
        """Says what the bits of an array mean, without copying them.

        Args:
            bits: Elements as uint8 or uint16; for packed ones their bytes, in one dimension.
            data_type: Element type.
            shape: Shape of the tensor; needed for packed elements, else that of the array.

        Raises:
            FieldInvalidError: they cannot be the bits of such a tensor.
        """
        plain = np.asarray(bits)
        if data_type not in STORAGE or not _stands_in(plain, data_type):
            raise FieldInvalidError(f"an array of {plain.dtype} is no bits of {data_type.spelling}")
        if data_type.is_packed:
            _check_packed(plain, data_type, shape)
        elif shape not in (None, plain.shape):
            raise FieldInvalidError(f"bits of shape {plain.shape} are no tensor of shape {shape}")
        array = plain.view(cls)
        array._data_type = data_type
        array._packed_shape = tuple(shape or ())
        return array

    def __array_finalize__(self, source: object) -> None:
        """Keeps the element type in views of whole elements."""
        data_type = getattr(source, "_data_type", None)
        if data_type is not None and (data_type.is_packed or not _stands_in(self, data_type)):
            data_type = None
        self._data_type = data_type
        self._packed_shape = ()

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> "BitsArray":
        """Returns the same bits of the same tensor in memory of their own."""
        copied = np.asarray(self).copy(order).view(BitsArray)
        copied._data_type, copied._packed_shape = self._data_type, self._packed_shape
        return copied

    def __copy__(self) -> "BitsArray":
        """Returns a copy, as `copy` does."""
        return self.copy()

    def __deepcopy__(self, memo: object) -> "BitsArray":
        """Returns a copy, as `copy` does."""
        return self.copy()

    def __array_wrap__(
        self, array: Array, context: Any = None, return_scalar: bool = False
    ) -> Any:  # Any: numpy passes what it calls a context, and takes an array or a number
        """Returns the result of a calculation as numpy's own."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    @property
    def descriptor(self) -> TensorDescriptor:
        """Element type, shape and byte size of the tensor.

        Raises:
            FieldInvalidError: these are bits of no type, such as a part of packed ones.
        """
        if self._data_type is None:
            raise FieldInvalidError(
                "a part of packed elements has no element type; make a BitsArray of its bytes"
            )
        shape = self._packed_shape if self._data_type.is_packed else self.shape
        return TensorDescriptor(self._data_type, shape, self.nbytes)


def data_type_of_bits(array: "Array | np.generic") -> DataType | None:
    """Returns the element type of an array if it is one of those that numpy lacks.

    Raises:
        FieldInvalidError: it holds bits of no type.
    """
    if isinstance(array, BitsArray):
        return array.descriptor.data_type
    return _BY_NAME.get(array.dtype.name)


def shape_of(array: Array) -> tuple[int, ...]:
    """Returns the shape of the tensor that an array holds."""
    return array.descriptor.shape if isinstance(array, BitsArray) else array.shape


def pack(array: Array) -> Array:
    """Returns the bytes of packed elements, from an array of them as numbers or as bits."""
    if isinstance(array, BitsArray):
        return np.asarray(array)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    even = flat.size // 2 * 2
    packed = np.empty((flat.size + 1) // 2, np.uint8)
    pairs = flat[:even].view("<u2") & (_LOW << 8 | _LOW)
    # The second of each pair moves beside the first; storing keeps the lower byte.
    pairs |= pairs >> 4
    packed[: even // 2] = pairs
    if even < flat.size:
        packed[-1] = flat[-1] & _LOW
    return packed


def from_bits(descriptor: TensorDescriptor, bits: Array) -> Array:
    """Returns a tensor from its bits in one dimension, which is read-only if they are.

    Raises:
        PayloadCorruptError: packed elements have bits after the last one.
    """
    data_type, shape = descriptor.data_type, descriptor.shape
    kind = _number_type(data_type)
    if not data_type.is_packed:
        array = bits.reshape(shape)
        return array.view(kind) if kind is not None else BitsArray(array, data_type)
    if math.prod(shape) % 2 and bits[-1] > _LOW:
        raise PayloadCorruptError(f"a {data_type.spelling} tensor has bits after its last element")
    if kind is None:
        return BitsArray(bits, data_type, shape)
    numbers = _HALVES[bits].view(np.uint8)[: math.prod(shape)].reshape(shape).view(kind)
    numbers.flags.writeable = bits.flags.writeable
    return numbers


def array_of(
    data_type: DataType, numbers: "Sequence[int | float]", shape: tuple[int, ...]
) -> Array:
    """Returns a tensor of numbers of Python, each rounded to what the element type can hold.

    Args:
        data_type: One that numpy lacks.
        numbers: One for each element, or one for all of them.
        shape: Shape of the tensor.
    """
    if data_type in SHORT_FLOATS:
        patterns = [float_bits(data_type, number) for number in numbers]
    else:
        patterns = [int(number) & _LOW for number in numbers]
    bits: Array = np.array(patterns, STORAGE[data_type])
    if bits.size == 1:
        bits = np.repeat(bits, math.prod(shape))
    if data_type.is_packed:
        bits = pack(bits)
    return from_bits(TensorDescriptor(data_type, shape, bits.nbytes), bits)


@functools.cache
def _number_type(data_type: DataType) -> "np.dtype[Any] | None":
    """Returns the type of `ml_dtypes`, or None where that library is absent or too old for it."""
    try:
        # Optional: it turns patterns into numbers, and only readers of these types need that.
        import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    kind = getattr(ml_dtypes, data_type.spelling, None)
    return None if kind is None else np.dtype(kind)


def _stands_in(array: Array, data_type: DataType) -> bool:
    return array.dtype.newbyteorder("=") == np.dtype(STORAGE[data_type]).newbyteorder("=")


def _check_packed(bits: Array, data_type: DataType, shape: tuple[int, ...] | None) -> None:
    if shape is None:
        raise FieldInvalidError(f"the shape of a {data_type.spelling} tensor must be given")
    count = math.prod(shape)
    wanted = (elements_bytes(data_type, count),)
    if bits.shape != wanted or not bits.flags.c_contiguous:
        raise FieldInvalidError(
            f"bytes of shape {list(bits.shape)} are no {data_type.spelling} tensor of shape"
            f" {list(shape)}; it takes {wanted[0]} bytes in one dimension"
        )
    if count % 2 and bits[-1] > _LOW:
        raise FieldInvalidError(f"a {data_type.spelling} tensor has bits after its last element")
