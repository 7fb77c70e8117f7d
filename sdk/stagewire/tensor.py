"""Tensors as every process holds them, and their bytes on the wire.

A value is a numpy array, or a `str` or `bytes` for a single string. Elements are little-endian and
in row-major order; a string element is its length as an unsigned 32-bit integer followed by its
bytes. A bfloat16 array is a numpy array of `ml_dtypes.bfloat16` where that library is installed,
else a `Bfloat16Bits` view of the 16-bit patterns.
"""

import math
import struct
import sys
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stagewire.descriptor import DataType, TensorDescriptor, check_descriptor
from stagewire.errors import FieldInvalidError, MessageTooBigError, PayloadCorruptError
from stagewire.limits import STRING_ELEMENTS

__all__ = [
    "Array",
    "Bfloat16Bits",
    "DataType",
    "TensorDescriptor",
    "Value",
    "check_descriptor",
    "data_type_of",
    "decode",
    "encode",
]

Array: TypeAlias = NDArray[Any]
"""An array of any element type: the type is a run-time fact of each tensor."""
Value: TypeAlias = Array | str | bytes


class Bfloat16Bits(np.ndarray[Any, np.dtype[np.uint16]]):
    """A uint16 array whose elements are bfloat16 bit patterns."""


_NUMPY: Final[dict[DataType, str]] = {
    DataType.BOOL: "|b1",
    DataType.INT8: "|i1",
    DataType.INT16: "<i2",
    DataType.INT32: "<i4",
    DataType.INT64: "<i8",
    DataType.UINT8: "|u1",
    DataType.UINT16: "<u2",
    DataType.UINT32: "<u4",
    DataType.UINT64: "<u8",
    DataType.FLOAT16: "<f2",
    DataType.BFLOAT16: "<u2",
    DataType.FLOAT32: "<f4",
    DataType.FLOAT64: "<f8",
}
_BY_NUMPY: Final = {
    np.dtype(code).newbyteorder("=").str: data_type
    for data_type, code in _NUMPY.items()
    if data_type is not DataType.BFLOAT16
}
_LENGTH: Final = struct.Struct("<I")


def data_type_of(value: Value) -> DataType:
    """Returns the element type of a value.

    Raises:
        FieldInvalidError: the value has no element type of the wire.
    """
    if isinstance(value, str):
        return DataType.UTF8
    if isinstance(value, bytes):
        return DataType.BYTES
    if not isinstance(value, (np.ndarray, np.generic)):
        raise FieldInvalidError(
            f"a {type(value).__name__} cannot be sent; make it a numpy array, a str or bytes"
        )
    if isinstance(value, Bfloat16Bits) or value.dtype.name == "bfloat16":
        return DataType.BFLOAT16
    if value.dtype.kind in "UO":
        first = value.flat[0] if value.size else ""
        return DataType.BYTES if isinstance(first, bytes) else DataType.UTF8
    if value.dtype.kind == "S":
        return DataType.BYTES
    data_type = _BY_NUMPY.get(value.dtype.newbyteorder("=").str)
    if data_type is None:
        raise FieldInvalidError(
            f"an array of numpy type {value.dtype} cannot be sent; convert it to one of"
            f" {', '.join(item.spelling for item in DataType)}"
        )
    return data_type


def encode(value: Value) -> tuple[TensorDescriptor, memoryview]:
    """Returns the descriptor and the bytes of a value, without copying a contiguous array.

    Raises:
        FieldInvalidError: the value has no element type of the wire.
        MessageTooBigError: the value is over a limit.
    """
    data_type = data_type_of(value)
    if data_type.is_string:
        shape, payload = _encode_strings(value, data_type)
    else:
        array = np.asarray(value)
        # A view made by broadcasting has few bytes until it is copied: the limits come first.
        check_descriptor(TensorDescriptor(data_type, array.shape, array.nbytes))
        # ascontiguousarray makes a 0-d array 1-d; the shape is taken from the original.
        shape = array.shape
        if sys.byteorder == "big" or array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        payload = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    descriptor = TensorDescriptor(data_type, tuple(shape), payload.nbytes)
    check_descriptor(descriptor)
    return descriptor, payload


def decode(descriptor: TensorDescriptor, payload: "memoryview | bytes | bytearray") -> Value:
    """Returns the value of a checked descriptor, as a read-only view of the payload.

    Raises:
        PayloadCorruptError: the payload does not have the form that the descriptor says.
    """
    view = memoryview(payload).toreadonly()
    if view.nbytes != descriptor.size_bytes:
        raise PayloadCorruptError(
            f"a tensor of {descriptor.size_bytes} bytes came with {view.nbytes}"
        )
    if descriptor.data_type.is_string:
        return _decode_strings(descriptor, view)
    array = np.frombuffer(view, dtype=_NUMPY[descriptor.data_type]).reshape(descriptor.shape)
    if descriptor.data_type is DataType.BFLOAT16:
        return _bfloat16(array)
    if descriptor.data_type is DataType.BOOL and array.size and array.view(np.uint8).max() > 1:
        raise PayloadCorruptError("a bool tensor has an element other than zero and one")
    return array


def _bfloat16(bits: Array) -> Array:
    try:
        # Optional: it turns the patterns into numbers, and only readers of bfloat16 need that.
        import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return bits.view(Bfloat16Bits)
    typed: Array = bits.view(ml_dtypes.bfloat16)
    return typed


def _encode_strings(value: Value, data_type: DataType) -> tuple[tuple[int, ...], memoryview]:
    if isinstance(value, (str, bytes)):
        shape: tuple[int, ...] = ()
        elements: list[Any] = [value]
    else:
        shape = value.shape
        if value.size > STRING_ELEMENTS:
            raise MessageTooBigError(f"a tensor of {value.size} strings is over {STRING_ELEMENTS}")
        elements = value.ravel().tolist()
    wanted = str if data_type is DataType.UTF8 else bytes
    parts: list[bytes] = []
    for element in elements:
        if not isinstance(element, wanted):
            raise FieldInvalidError(
                f"an array of strings has an element of type {type(element).__name__}"
            )
        try:
            raw = element.encode() if isinstance(element, str) else element
        except UnicodeEncodeError:
            raise FieldInvalidError("a text has a lone surrogate; it is not valid UTF-8") from None
        parts += (_LENGTH.pack(len(raw)), raw)
    return shape, memoryview(b"".join(parts))


def _decode_strings(descriptor: TensorDescriptor, view: memoryview) -> Value:
    elements: list[Any] = []
    position = 0
    for _ in range(math.prod(descriptor.shape)):
        start = position + _LENGTH.size
        if start > view.nbytes:
            raise PayloadCorruptError("a tensor of strings ends inside a length")
        (length,) = _LENGTH.unpack_from(view, position)
        position = start + length
        if position > view.nbytes:
            raise PayloadCorruptError("a tensor of strings ends inside an element")
        raw = bytes(view[start:position])
        if descriptor.data_type is DataType.UTF8:
            try:
                elements.append(raw.decode())
            except UnicodeDecodeError:
                raise PayloadCorruptError("a text is not valid UTF-8") from None
        else:
            elements.append(raw)
    if position != view.nbytes:
        raise PayloadCorruptError("a tensor of strings has bytes after its last element")
    if not descriptor.shape:
        return elements[0]  # type: ignore[no-any-return] # str or bytes by the branch above
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    array = array.reshape(descriptor.shape)
    array.flags.writeable = False
    return array
