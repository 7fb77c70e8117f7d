"""Tensors and their bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stagewire import tensor
from stagewire.bits import STORAGE
from stagewire.descriptor import element_bits, elements_bytes
from stagewire.errors import FieldInvalidError, MessageTooBigError, PayloadCorruptError, StageError
from stagewire.limits import STRING_ELEMENTS, TENSOR_BYTES, TENSOR_DIMENSION, TENSOR_RANK
from stagewire.tensor import DataType, TensorDescriptor
from stagewire.v1 import tensor_pb2

pytestmark = pytest.mark.unit

NUMERIC = [item for item in DataType if not item.is_string and item not in STORAGE]
# A tensor of no bytes may still have extents that numpy could not hold.
HUGE = [2**40 + 1, 2**61, 2**63, 2**64, -1]


def numpy_type(data_type):
    return np.dtype(data_type.spelling)


def round_trip(value):
    descriptor, payload = tensor.encode(value)
    tensor.check_descriptor(descriptor)
    return tensor.decode(descriptor, bytes(payload))


def test_the_element_types_are_those_of_the_wire():
    assert {item.name: item.value for item in DataType} == {
        name.removeprefix("DATA_TYPE_"): number
        for name, number in tensor_pb2.DataType.items()
        if number
    }


@given(st.data())
def test_an_array_of_any_type_and_shape_comes_back_as_it_was(data):
    dtype = numpy_type(data.draw(st.sampled_from(NUMERIC)))
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
    value = data.draw(arrays.arrays(dtype, shape))
    back = round_trip(value)
    assert back.dtype == dtype
    assert back.shape == value.shape
    assert back.tobytes() == value.tobytes()


@pytest.mark.parametrize("data_type", NUMERIC)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3)])
def test_every_type_passes_single_empty_and_full(data_type, shape):
    value = np.ones(shape, numpy_type(data_type))
    back = round_trip(value)
    assert (back.dtype, back.shape) == (value.dtype, shape)
    assert np.array_equal(back, value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(24, dtype=np.int16).reshape(4, 6)[::2, ::3],
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(5, dtype=np.int64)[::-1],
        np.broadcast_to(np.float32(7), (3, 2)),
        np.arange(4, dtype=">i4"),
        np.float32(1.5),
        np.int64(-3),
    ],
)
def test_a_view_of_any_layout_arrives_in_row_major_little_endian_order(value):
    back = round_trip(value)
    assert np.array_equal(back, value)
    assert back.shape == np.shape(value)


def test_a_contiguous_array_is_not_copied():
    value = np.arange(8, dtype=np.float32)
    _, payload = tensor.encode(value)
    value[0] = 99
    assert np.frombuffer(payload, "<f4")[0] == 99


def test_what_was_decoded_cannot_be_changed():
    array = round_trip(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    strings = round_trip(np.array(["a", "b"], object))
    with pytest.raises(ValueError, match="read-only"):
        strings[0] = "c"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(TEXTS, max_size=6) | st.lists(st.binary(max_size=20), min_size=1, max_size=6))
def test_strings_come_back_as_they_were(elements):
    value = np.empty(len(elements), object)
    value[:] = elements
    assert round_trip(value).tolist() == elements


@given(TEXTS | st.binary(max_size=50))
def test_a_single_string_comes_back_as_it_was(value):
    back = round_trip(value)
    assert type(back) is type(value)
    assert back == value


def test_arrays_of_fixed_width_strings_are_strings():
    assert round_trip(np.array([["añ", ""], ["b", "c"]])).tolist() == [["añ", ""], ["b", "c"]]
    assert round_trip(np.array([b"ab", b"c"])).tolist() == [b"ab", b"c"]
    assert round_trip(np.empty((2, 0), object)).shape == (2, 0)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", 1], object),
        np.array([b"a", "b"], object),
        np.array([None], object),
        "\ud800",
        np.zeros(2, np.complex64),
        np.zeros(2, "datetime64[s]"),
        np.zeros(2, [("x", "<f4")]),
        3,
        [1.0, 2.0],
        None,
    ],
)
def test_what_has_no_wire_type_is_refused(value):
    with pytest.raises(FieldInvalidError):
        tensor.encode(value)


# --- limits ---


@pytest.mark.parametrize(
    "descriptor",
    [
        TensorDescriptor(DataType.UINT8, (TENSOR_BYTES,), TENSOR_BYTES),
        TensorDescriptor(DataType.INT4, (TENSOR_BYTES,), TENSOR_BYTES // 2),
        TensorDescriptor(DataType.FLOAT32, (0, TENSOR_DIMENSION), 0),
        TensorDescriptor(DataType.FLOAT32, (1,) * TENSOR_RANK, 4),
        TensorDescriptor(DataType.UTF8, (STRING_ELEMENTS,), STRING_ELEMENTS * 4),
    ],
)
def test_the_largest_of_each_passes(descriptor):
    tensor.check_descriptor(descriptor)


@pytest.mark.parametrize(
    "descriptor",
    [
        TensorDescriptor(DataType.UINT8, (TENSOR_BYTES + 1,), TENSOR_BYTES + 1),
        TensorDescriptor(DataType.INT4, (TENSOR_BYTES + 1,), TENSOR_BYTES // 2 + 1),
        TensorDescriptor(DataType.UINT8, (1,), 2**63),
        TensorDescriptor(DataType.UINT8, (1,), -1),
        TensorDescriptor(DataType.FLOAT32, (1,) * (TENSOR_RANK + 1), 4),
        TensorDescriptor(DataType.FLOAT32, (0, 2**21, 2**20), 0),
        TensorDescriptor(DataType.UTF8, (STRING_ELEMENTS + 1,), 4 * STRING_ELEMENTS + 4),
        *(TensorDescriptor(DataType.FLOAT64, (0, extent), 0) for extent in HUGE),
        *(TensorDescriptor(DataType.UINT8, (extent,), 0) for extent in HUGE),
    ],
)
def test_one_more_is_refused(descriptor):
    with pytest.raises(MessageTooBigError):
        tensor.check_descriptor(descriptor)


@pytest.mark.parametrize(
    "descriptor",
    [
        TensorDescriptor(DataType.FLOAT32, (3,), 11),
        TensorDescriptor(DataType.FLOAT32, (), 0),
        TensorDescriptor(DataType.FLOAT32, (0,), 4),
        TensorDescriptor(DataType.UTF8, (3,), 11),
        TensorDescriptor(DataType.INT4, (3,), 3),
        TensorDescriptor(DataType.UINT4, (4,), 3),
    ],
)
def test_a_size_that_contradicts_the_shape_is_refused(descriptor):
    with pytest.raises(FieldInvalidError):
        tensor.check_descriptor(descriptor)


@pytest.mark.parametrize(
    "value",
    [
        np.broadcast_to(np.uint8(1), (TENSOR_BYTES + 1,)),
        np.broadcast_to(np.float32(1), (2**39, 1)),
        np.broadcast_to(np.array("a", object), (STRING_ELEMENTS + 1,)),
        np.zeros((1,) * (TENSOR_RANK + 1)),
    ],
)
def test_a_value_over_a_limit_is_refused_before_it_is_copied(value):
    with pytest.raises(MessageTooBigError):
        tensor.encode(value)


# --- damage ---


@pytest.mark.parametrize(
    ("descriptor", "payload"),
    [
        (TensorDescriptor(DataType.FLOAT32, (2,), 8), bytes(7)),
        (TensorDescriptor(DataType.FLOAT32, (2,), 8), bytes(9)),
        (TensorDescriptor(DataType.BOOL, (2,), 2), b"\0\2"),
        (TensorDescriptor(DataType.BOOL, (), 1), b"\xff"),
        (TensorDescriptor(DataType.INT4, (3,), 2), b"\0\x10"),
        (TensorDescriptor(DataType.UINT4, (), 1), b"\xf0"),
        (TensorDescriptor(DataType.FLOAT8_E5M2, (2,), 2), b"\0"),
        (TensorDescriptor(DataType.UTF8, (1,), 5), b"\1\0\0\0\xff"),
        (TensorDescriptor(DataType.UTF8, (1,), 5), b"\2\0\0\0a"),
        (TensorDescriptor(DataType.UTF8, (1,), 6), b"\1\0\0\0ab"),
        (TensorDescriptor(DataType.BYTES, (2,), 8), b"\4\0\0\0abcd"),
        (TensorDescriptor(DataType.BYTES, (2,), 8), b"\1\0\0\0abcd"),
        (TensorDescriptor(DataType.BYTES, (1,), 4), b"\xff\xff\xff\xff"),
        (TensorDescriptor(DataType.BYTES, (0,), 1), b"a"),
    ],
)
def test_a_payload_that_is_not_what_the_descriptor_says_is_corrupt(descriptor, payload):
    with pytest.raises(PayloadCorruptError):
        tensor.decode(descriptor, payload)


@settings(max_examples=300)
@given(
    st.sampled_from(list(DataType)),
    st.lists(st.integers(-2, 2**64), max_size=9) | st.lists(st.integers(0, 3), max_size=3),
    st.integers(-1, 2**64) | st.integers(0, 64),
    st.binary(max_size=64),
)
def test_no_descriptor_and_payload_do_worse_than_a_typed_failure(data_type, shape, size, payload):
    try:
        descriptor = TensorDescriptor(data_type, tuple(shape), size)
        tensor.check_descriptor(descriptor)
        value = tensor.decode(descriptor, payload)
    except StageError:
        return
    assert np.shape(value) == tuple(shape)


@pytest.mark.parametrize("data_type", DataType)
def test_the_size_of_elements_is_that_of_their_arrays(data_type):
    if data_type.is_string:
        assert element_bits(data_type) == elements_bytes(data_type, 3) == 0
        return
    size = elements_bytes(data_type, 3)
    array = tensor.decode(TensorDescriptor(data_type, (3,), size), bytes(size))
    assert array.itemsize * 8 == max(element_bits(data_type), 8)
    assert array.shape == (3,)


def test_packed_elements_take_half_a_byte_and_the_last_a_whole_one():
    sizes = [elements_bytes(DataType.INT4, count) for count in range(6)]
    assert sizes == [0, 1, 1, 2, 2, 3]
