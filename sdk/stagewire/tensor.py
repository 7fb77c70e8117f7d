"""Tensors as every process holds them, and their bytes on the wire.

A value is a numpy array, or a `str` or `bytes` for a single string. Elements are little-endian and
in row-major order; a string element is its length as an unsigned 32-bit integer followed by its
bytes. Element types that numpy lacks (bfloat16, floats of 8 bits, integers of 4) are arrays of the
types of `ml_dtypes` where that library is installed, else a `BitsArray`, a view of their bits.
"""

import math
import struct
import sys
from typing import Any, Final, TypeAlias

import numpy as np

from stagewire.bits import STORAGE, Array, BitsArray, data_type_of_bits, from_bits, pack, shape_of
from stagewire.descriptor import DataType, TensorDescriptor, check_descriptor, elements_bytes
from stagewire.errors import FieldInvalidError, MessageTooBigError, PayloadCorruptError
from stagewire.limits import STRING_ELEMENTS

__all__ = [
    "Array",
    "BitsArray",
    "DataType",
    "TensorDescriptor",
    "Value",
    "check_descriptor",
    "data_type_of",
    "decode",
    "encode",
]

Value: TypeAlias = Array | str | bytes

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
    DataType.FLOAT32: "<f4",
    DataType.FLOAT64: "<f8",
}
_BY_NUMPY: Final = {
    np.dtype(code).newbyteorder("=").str: data_type for data_type, code in _NUMPY.items()
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
    if (lacking := data_type_of_bits(value)) is not None:
        return lacking
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
        shape, payload = _encode_elements(value, data_type)
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
    if descriptor.data_type in STORAGE:
        return from_bits(descriptor, np.frombuffer(view, dtype=STORAGE[descriptor.data_type]))
    array = np.frombuffer(view, dtype=_NUMPY[descriptor.data_type]).reshape(descriptor.shape)
    if descriptor.data_type is DataType.BOOL and array.size and array.view(np.uint8).max() > 1:
        raise PayloadCorruptError("a bool tensor has an element other than zero and one")
    return array


def _encode_elements(value: Any, data_type: DataType) -> tuple[tuple[int, ...], memoryview]:
    array = value if isinstance(value, BitsArray) else np.asarray(value)
    # ascontiguousarray makes a 0-d array 1-d; the shape is taken from the original.
    shape = shape_of(array)
    # A view made by broadcasting has few bytes until it is copied: the limits come first.
    check_descriptor(
        TensorDescriptor(data_type, shape, elements_bytes(data_type, math.prod(shape)))
    )
    if data_type.is_packed:
        return shape, pack(array).data
    array = np.asarray(array)
    if sys.byteorder == "big" or array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


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
