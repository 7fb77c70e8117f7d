"""Ports and the check of an item against them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import ports
from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType, TensorDescriptor
from stagewire.v1 import tensor_pb2

pytestmark = pytest.mark.unit

AUDIO = Port("audio", DataType.FLOAT32, (Dimension("samples", 480000),), is_stream=True)
IMAGE = Port("image", DataType.UINT8, (Dimension("h", 10), Dimension("w", 10), Dimension("", 3)))
TEXT = Port("text", DataType.UTF8)


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


@pytest.mark.parametrize("data_type", [0, 16])
def test_a_port_of_an_unknown_element_type_is_refused(data_type):
    with pytest.raises(FieldInvalidError):
        ports.from_message(tensor_pb2.PortType(name="x", data_type=data_type))
