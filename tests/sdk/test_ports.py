"""Ports and the check of an item against them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import ports
from stagewire.bits import array_of
from stagewire.errors import FieldInvalidError, MessageTooBigError, TensorMismatchError
from stagewire.limits import TEXT_BYTES
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType, TensorDescriptor, encode
from stagewire.v1 import tensor_pb2

pytestmark = pytest.mark.unit

AUDIO = Port("audio", DataType.FLOAT32, (Dimension("samples", 480000),), is_stream=True)
IMAGE = Port("image", DataType.UINT8, (Dimension("h", 10), Dimension("w", 10), Dimension("", 3)))
TEXT = Port("text", DataType.UTF8)


def strings(data_type, *elements, shape=()):
    """Describes strings of so many bytes each."""
    return TensorDescriptor(data_type, shape, sum(4 + size for size in elements))


@pytest.mark.parametrize("data_type", [DataType.UTF8, DataType.BYTES])
def test_the_limit_of_texts_is_on_their_own_bytes(data_type):
    one, row = Port("x", data_type), Port("x", data_type, (Dimension("n", 3),))
    one.check(strings(data_type, TEXT_BYTES))
    row.check(strings(data_type, TEXT_BYTES - 2, 1, 1, shape=(3,)))
    for port, sizes in ((one, [TEXT_BYTES + 1]), (row, [TEXT_BYTES, 0, 1])):
        shape = (3,) if port is row else ()
        with pytest.raises(MessageTooBigError) as refusal:
            port.check(strings(data_type, *sizes, shape=shape))
        assert f" of {TEXT_BYTES + 1} bytes, the limit is {TEXT_BYTES}" in refusal.value.message
        assert refusal.value.facts == {"port": "x"}


@pytest.mark.parametrize("value", ["é" * (TEXT_BYTES // 2), "x" * TEXT_BYTES, bytes(TEXT_BYTES)])
def test_the_largest_text_is_within_what_is_reserved_for_it(value):
    descriptor, _ = encode(value)
    port = Port("x", descriptor.data_type)
    port.check(descriptor)
    assert descriptor.size_bytes == port.largest_bytes == port.window_bytes
    with pytest.raises(MessageTooBigError):
        port.check(encode(value + value[:1])[0])


def test_the_largest_row_of_texts_is_within_what_is_reserved_for_it():
    port = Port("x", DataType.UTF8, (Dimension("n", 5),))
    value = np.array(["", "", "", "", "x" * TEXT_BYTES], object)
    assert encode(value)[0].size_bytes == port.largest_bytes


@pytest.mark.parametrize("data_type", [DataType.INT4, DataType.UINT4])
def test_a_port_of_packed_elements_reserves_half_a_byte_for_each(data_type):
    port = Port("x", data_type, (Dimension("n", 3), Dimension("", 5)))
    assert port.largest_bytes == 8
    port.check(encode(array_of(data_type, [1], (3, 5)))[0])
    with pytest.raises(TensorMismatchError, match=rf"takes {data_type.spelling}\[n<=3, 5\]"):
        port.check(encode(array_of(data_type, [1], (15,)))[0])


def test_numbers_on_a_port_of_texts_are_no_text_that_is_too_long():
    with pytest.raises(TensorMismatchError):
        TEXT.check(TensorDescriptor(DataType.UINT8, (2 * TEXT_BYTES,), 2 * TEXT_BYTES))


def describe(data_type, *shape):
    return TensorDescriptor(data_type, shape, 0)


@pytest.mark.parametrize(
    ("port", "descriptor"),
    [
        (AUDIO, describe(DataType.FLOAT32, 480000)),
        (AUDIO, describe(DataType.FLOAT32, 0)),
        (IMAGE, describe(DataType.UINT8, 10, 1, 3)),
        (TEXT, describe(DataType.UTF8)),
    ],
)
def test_an_item_within_the_rules_passes(port, descriptor):
    port.check(descriptor)


@pytest.mark.parametrize(
    ("port", "descriptor"),
    [
        (AUDIO, describe(DataType.FLOAT64, 4)),
        (AUDIO, describe(DataType.FLOAT32, 480001)),
        (AUDIO, describe(DataType.FLOAT32)),
        (AUDIO, describe(DataType.FLOAT32, 1, 4)),
        (IMAGE, describe(DataType.UINT8, 10, 10, 4)),
        (IMAGE, describe(DataType.UINT8, 10, 10, 2)),
        (TEXT, describe(DataType.BYTES)),
        (TEXT, describe(DataType.UTF8, 1)),
    ],
)
def test_an_item_outside_the_rules_is_refused(port, descriptor):
    with pytest.raises(TensorMismatchError) as refusal:
        port.check(descriptor)
    assert refusal.value.facts == {"port": port.name}


def test_the_refusal_names_both_sides():
    with pytest.raises(TensorMismatchError) as refusal:
        AUDIO.check(describe(DataType.INT16, 2, 3))
    assert refusal.value.message == (
        "port 'audio' takes a stream of float32[samples<=480000] and got int16[2, 3]"
    )
    assert str(TEXT) == "utf8"
    assert str(IMAGE) == "uint8[h<=10, w<=10, 3]"


@given(
    st.builds(
        Port,
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(list(DataType)),
        st.lists(
            st.builds(Dimension, st.sampled_from(["", "n"]), st.integers(0, 2**64 - 1)),
            max_size=8,
        ).map(tuple),
        st.booleans(),
    )
)
def test_a_port_survives_the_wire(port):
    raw = ports.to_message(port).SerializeToString()
    assert ports.from_message(tensor_pb2.PortType.FromString(raw)) == port


@pytest.mark.parametrize("data_type", [0, max(DataType) + 1])
def test_a_port_of_an_unknown_element_type_is_refused(data_type):
    with pytest.raises(FieldInvalidError):
        ports.from_message(tensor_pb2.PortType(name="x", data_type=data_type))
