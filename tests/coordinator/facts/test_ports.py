import pytest

from coordinator.facts.ports import DataTypeName, Extent, PortType

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("port_type", "text"),
    [
        (PortType(DataTypeName.INT32), "int32"),
        (PortType(DataTypeName.UTF8, (), True), "stream of utf8"),
        (PortType(DataTypeName.FLOAT32, (Extent("samples", 480000),)), "float32[samples<=480000]"),
        (
            PortType(DataTypeName.INT8, (Extent("", 3), Extent("w", 9)), True),
            "stream of int8[3, w<=9]",
        ),
    ],
)
def test_a_port_type_reads_like_the_plan(port_type, text):
    assert str(port_type) == text


def test_equal_rules_are_equal_and_usable_as_keys():
    assert len({PortType(DataTypeName.BOOL), PortType(DataTypeName.BOOL)}) == 1
