"""Values of types that numpy lacks on the command line."""

import numpy as np
import pytest

from coordinator.cli.outputs import describe, write
from coordinator.cli.values import read_inputs
from stagewire.bits import STORAGE, array_of
from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.ports import Port
from stagewire.tensor import BitsArray, DataType, encode

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("data_type", STORAGE)
def test_a_number_takes_the_type_of_its_port(data_type):
    value = read_inputs({"x": "3"}, [Port("x", data_type)])["x"]
    assert encode(value)[0].data_type is data_type
    assert bytes(encode(value)[1]) == bytes(encode(array_of(data_type, [3], ()))[1])


@pytest.mark.parametrize(("data_type", "value"), [(DataType.INT4, "8"), (DataType.UINT4, "-1")])
def test_a_number_that_its_port_cannot_hold_is_refused(data_type, value):
    with pytest.raises(FieldInvalidError, match=f"{value}, which is outside"):
        read_inputs({"x": value}, [Port("x", data_type)])


def test_an_output_is_described_by_its_element_type():
    assert describe(np.zeros((2, 3), np.float32)) == "float32[2, 3]"
    assert describe(np.array(1.5, np.float32)) == "float32 1.5"
    assert describe(array_of(DataType.FLOAT8_E5M2, [1], (2,))) == "float8_e5m2[2]"
    packed = BitsArray(np.zeros(2, np.uint8), DataType.INT4, (3,))
    assert describe(packed) == "int4[3]"


@pytest.mark.parametrize("data_type", STORAGE)
def test_what_numpy_cannot_read_back_is_not_saved(tmp_path, data_type):
    with pytest.raises(TensorMismatchError, match=f"numpy has no {data_type.spelling}"):
        write(tmp_path / "out.npy", [array_of(data_type, [1], (3,))], None)
    assert list(tmp_path.iterdir()) == []
