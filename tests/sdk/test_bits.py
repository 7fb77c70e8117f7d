"""Arrays of element types that numpy lacks, as numbers and as bits."""

import contextlib
import copy
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stagewire import bits, tensor
from stagewire.bits import STORAGE, array_of, from_bits, pack
from stagewire.descriptor import elements_bytes
from stagewire.errors import FieldInvalidError, PayloadCorruptError
from stagewire.tensor import BitsArray, DataType, TensorDescriptor

pytestmark = pytest.mark.unit

TYPES = st.sampled_from(list(STORAGE))
PACKED = [data_type for data_type in STORAGE if data_type.is_packed]
WHOLE = [data_type for data_type in STORAGE if not data_type.is_packed]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def number_type(data_type):
    return np.dtype(getattr(ml_dtypes, data_type.spelling))


@contextlib.contextmanager
def without_the_library():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ml_dtypes", None)
        bits._number_type.cache_clear()
        yield
    bits._number_type.cache_clear()


@st.composite
def numbers(draw, data_type, shape):
    """Draws an array of the library's type with any pattern in it."""
    raw = draw(arrays.arrays(STORAGE[data_type], shape))
    if data_type.is_packed:
        # numpy 1 makes a wider number of an array without dimensions.
        raw = np.asarray(raw & 15, raw.dtype)
    return raw.view(number_type(data_type))


def round_trip(value):
    descriptor, payload = tensor.encode(value)
    tensor.check_descriptor(descriptor)
    assert payload.nbytes == descriptor.size_bytes
    return tensor.decode(descriptor, bytes(payload))


def same_bits(one, other):
    """Whether two arrays hold the same patterns; as numbers, NaN would differ from itself."""
    return bytes(tensor.encode(one)[1]) == bytes(tensor.encode(other)[1])


# --- numbers ---


@given(st.data())
def test_numbers_of_any_type_and_shape_come_back_as_they_were(data):
    data_type = data.draw(TYPES)
    value = data.draw(numbers(data_type, data.draw(SHAPES)))
    descriptor, _ = tensor.encode(value)
    assert descriptor == TensorDescriptor(
        data_type, value.shape, elements_bytes(data_type, value.size)
    )
    back = round_trip(value)
    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    assert back.tobytes() == value.tobytes()
    assert not back.flags.writeable


@given(st.data())
def test_views_of_any_layout_arrive_in_row_major_order(data):
    data_type = data.draw(TYPES)
    value = data.draw(numbers(data_type, (4, 6)))
    steps = st.sampled_from([1, 2, 3, -1, -2])
    view = value[:: data.draw(steps), :: data.draw(steps)]
    if data.draw(st.booleans()):
        view = view.T
    back = round_trip(view)
    assert back.shape == view.shape
    assert back.tobytes() == view.tobytes()


@pytest.mark.parametrize("data_type", STORAGE)
def test_big_endian_numbers_arrive_as_the_same_numbers(data_type):
    value = np.array([1, 2, 3, 5, 7], number_type(data_type))
    swapped = value.astype(value.dtype.newbyteorder(">"))
    assert swapped.dtype.byteorder == ">"
    back = round_trip(swapped)
    assert back.dtype == value.dtype
    assert np.array_equal(back, value)


@pytest.mark.parametrize("data_type", STORAGE)
def test_a_single_number_of_the_library_is_a_tensor_without_dimensions(data_type):
    value = np.array([3], number_type(data_type))[0]
    assert isinstance(value, np.generic)
    back = round_trip(value)
    assert (back.shape, float(back)) == ((), 3.0)


def test_of_two_packed_elements_the_first_is_in_the_low_half():
    value = np.array([[1, -2, 3]], ml_dtypes.int4)
    assert bytes(tensor.encode(value)[1]) == b"\xe1\x03"
    assert round_trip(value).tolist() == [[1, -2, 3]]
    assert bytes(tensor.encode(np.array([15, 0, 8, 1], ml_dtypes.uint4))[1]) == b"\x0f\x18"


def test_other_types_of_the_library_are_refused():
    # The last one came later than the oldest version that is allowed.
    for kind in (ml_dtypes.float8_e4m3b11fnuz, getattr(ml_dtypes, "int2", np.complex64)):
        with pytest.raises(FieldInvalidError, match="float8_e4m3fn, float8_e5m2, int4, uint4"):
            tensor.encode(np.zeros(2, kind))


# --- bits ---


@given(st.data())
def test_without_the_library_a_tensor_is_a_view_of_its_bits(data):
    data_type = data.draw(TYPES)
    value = data.draw(numbers(data_type, data.draw(SHAPES)))
    descriptor, payload = tensor.encode(value)
    message = bytearray(payload)
    with without_the_library():
        back = tensor.decode(descriptor, message)
        assert isinstance(back, BitsArray)
        assert back.descriptor == descriptor
        assert tensor.encode(back)[0] == descriptor
        assert same_bits(back, value)
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(back)[...] = 0
    if message:
        message[0] ^= 1
        assert back.tobytes()[0] == message[0]


@pytest.mark.parametrize("data_type", WHOLE)
def test_views_of_bits_keep_their_element_type(data_type):
    value = BitsArray(np.arange(6, dtype=STORAGE[data_type]).reshape(2, 3), data_type)
    for view in (value[1], value[:, ::2], value.T, value.reshape(6), value.copy(), value[None]):
        descriptor, payload = tensor.encode(view)
        assert descriptor == TensorDescriptor(data_type, view.shape, view.nbytes)
        assert bytes(payload) == np.ascontiguousarray(view).tobytes()


def test_bits_of_another_byte_order_arrive_as_the_same_bits():
    value = BitsArray(np.array([0x3F80, 0xC000], ">u2"), DataType.BFLOAT16)
    assert bytes(tensor.encode(value)[1]) == b"\x80\x3f\x00\xc0"


@pytest.mark.parametrize("data_type", PACKED)
def test_a_part_of_packed_elements_has_no_element_type(data_type):
    value = BitsArray(np.array([0x21, 0x03], np.uint8), data_type, (3,))
    assert value.descriptor == TensorDescriptor(data_type, (3,), 2)
    for part in (value[:1], value[::-1], value.reshape(1, 2), value[[1, 0]]):
        with pytest.raises(FieldInvalidError, match="part of packed elements"):
            tensor.encode(part)


@pytest.mark.parametrize("data_type", STORAGE)
def test_a_copy_of_bits_is_the_same_tensor(data_type):
    value = array_of_bits(data_type, [1, 2, 3], (3, 1))
    for made in (value.copy(), copy.copy(value), copy.deepcopy(value)):
        assert made.descriptor == value.descriptor
        made[0] ^= 1
        assert not same_bits(made, value)
        assert type(made) is BitsArray


@pytest.mark.parametrize("data_type", STORAGE)
def test_what_arithmetic_makes_of_bits_is_no_tensor_of_their_type(data_type):
    shape = (3,)
    value = array_of_bits(data_type, [1, 2, 3], shape)
    for result in (value + 1, value * 0.5, value == 1, -value, value.sum(keepdims=True)):
        assert type(result) is np.ndarray
    assert value.sum() == np.asarray(value).sum()


def array_of_bits(data_type, elements, shape):
    with without_the_library():
        return array_of(data_type, elements, shape)


@pytest.mark.parametrize(
    ("array", "data_type", "shape", "says"),
    [
        (np.zeros(2, np.uint8), DataType.BFLOAT16, None, "array of uint8 is no bits of bfloat16"),
        (np.zeros(2, np.float32), DataType.INT4, (4,), "no bits of int4"),
        (np.zeros(2, np.uint8), DataType.UINT8, None, "no bits of uint8"),
        (np.zeros(2, np.uint8), DataType.FLOAT8_E5M2, (3,), "shape"),
        (np.zeros(2, np.uint8), DataType.INT4, None, "shape of a int4 tensor must be given"),
        (np.zeros(2, np.uint8), DataType.INT4, (5,), "takes 3 bytes in one dimension"),
        (np.zeros((2, 1), np.uint8), DataType.INT4, (4,), "in one dimension"),
        (np.zeros(4, np.uint8)[::2], DataType.UINT4, (4,), "in one dimension"),
        (np.array([0x10], np.uint8), DataType.UINT4, (), "after its last"),
    ],
)
def test_what_cannot_be_bits_of_a_tensor_is_refused(array, data_type, shape, says):
    with pytest.raises(FieldInvalidError, match=says):
        BitsArray(array, data_type, shape)


@given(st.data())
def test_any_payload_of_the_right_size_is_read_or_has_bits_after_its_last_element(data):
    data_type = data.draw(TYPES)
    shape = data.draw(SHAPES)
    count = int(np.prod(shape))
    size = elements_bytes(data_type, count)
    payload = data.draw(st.binary(min_size=size, max_size=size))
    descriptor = TensorDescriptor(data_type, shape, size)
    is_damaged = data_type.is_packed and count % 2 and payload[-1] > 15
    try:
        value = tensor.decode(descriptor, payload)
    except PayloadCorruptError:
        assert is_damaged
        return
    assert not is_damaged
    assert (tensor.encode(value)[0], bytes(tensor.encode(value)[1])) == (descriptor, payload)


@given(st.data())
def test_packing_undoes_unpacking(data):
    count = data.draw(st.integers(0, 40))
    packed = data.draw(arrays.arrays(np.uint8, (count + 1) // 2))
    if count % 2:
        packed[-1] &= 15
    for data_type in PACKED:
        descriptor = TensorDescriptor(data_type, (count,), packed.nbytes)
        unpacked = from_bits(descriptor, packed)
        assert unpacked.dtype == number_type(data_type)
        assert np.array_equal(pack(unpacked), packed)
        signed = [(byte >> 4 * half) & 15 for byte in packed.tolist() for half in (0, 1)][:count]
        if data_type is DataType.INT4:
            signed = [item - 16 if item > 7 else item for item in signed]
        assert unpacked.astype(np.int64).tolist() == signed


# --- numbers of Python ---


@pytest.mark.parametrize("data_type", STORAGE)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (1, 5)])
def test_one_number_fills_a_tensor(data_type, shape):
    filled = array_of(data_type, [3], shape)
    assert (filled.dtype, filled.shape) == (number_type(data_type), shape)
    assert np.array_equal(filled.astype(np.float64), np.full(shape, 3.0))
    assert same_bits(filled, array_of_bits(data_type, [3], shape))


@given(st.sampled_from(PACKED), st.data())
def test_integers_become_packed_elements(data_type, data):
    least, greatest = (-8, 7) if data_type is DataType.INT4 else (0, 15)
    elements = data.draw(st.lists(st.integers(least, greatest), max_size=9))
    assert array_of(data_type, elements, (len(elements),)).tolist() == elements
