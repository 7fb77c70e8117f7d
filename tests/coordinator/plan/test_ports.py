import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.ports import DataTypeName, Extent, PortType
from coordinator.plan.ports import (
    PortRef,
    check_port_type,
    parse_extent,
    parse_port_ref,
    why_not_connectable,
)

pytestmark = pytest.mark.unit

FLOAT32 = DataTypeName.FLOAT32


def floats(*extents, is_stream=False):
    return PortType(FLOAT32, tuple(map(parse_extent, extents)), is_stream)


@pytest.mark.parametrize(
    ("value", "extent"),
    [
        (3, Extent("", 3)),
        ("samples<=480000", Extent("samples", 480000)),
        ("w <= 9", Extent("w", 9)),
    ],
)
def test_an_extent_is_a_number_or_a_bounded_name(value, extent):
    assert parse_extent(value) == extent


@pytest.mark.parametrize(
    "value",
    [True, 1.5, None, [], "samples", "samples<480", "<=4", "n<=0", "n<=-1", "N<=4", "n<=04", "4"],
)
def test_another_extent_is_refused(value):
    with pytest.raises(ValueError, match="is not an extent"):
        parse_extent(value)


@pytest.mark.parametrize("value", [0, -1, 2**41, f"n<={2**41}"])
def test_an_extent_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match="out of range"):
        parse_extent(value)


def test_a_reference_is_stage_and_port():
    assert parse_port_ref("hear.audio") == PortRef("hear", "audio")
    assert str(parse_port_ref("hear.audio")) == "hear.audio"


@pytest.mark.parametrize(
    "text", ["", "hear", "hear.", ".audio", "a.b.c", "Hear.audio", "hear. audio", "a.b\n"]
)
def test_another_reference_is_refused(text):
    with pytest.raises(ValueError, match=r"write stage\.port"):
        parse_port_ref(text)


def test_the_largest_item_of_a_port_keeps_the_limits():
    check_port_type(floats(1 << 28))
    check_port_type(PortType(DataTypeName.UTF8, (Extent("", 1 << 20),)))

    with pytest.raises(ValueError, match="9 dimensions"):
        check_port_type(floats(*[1] * 9))
    with pytest.raises(ValueError, match=r"4294967296 bytes an item"):
        check_port_type(floats("n<=32768", "m<=32768"))
    with pytest.raises(ValueError, match="strings"):
        check_port_type(PortType(DataTypeName.BYTES, (Extent("n", (1 << 20) + 1),)))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (floats("n<=5"), floats("n<=5")),
        (floats("n<=5"), floats("samples<=9")),
        (floats(5), floats("n<=5")),
        (floats(5, 2), floats(5, 2)),
        (floats(5), floats("n<=5", is_stream=True)),
        (floats(is_stream=True), floats(is_stream=True)),
    ],
)
def test_ports_connect_when_every_item_fits(source, target):
    assert why_not_connectable(source, target) is None


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (floats(), PortType(DataTypeName.FLOAT64), "types differ"),
        (floats(5), floats(5, 1), "types differ"),
        (floats("n<=6"), floats("n<=5"), "may reach 6, above 5"),
        (floats("n<=5"), floats(5), "must be 5, not n<=5"),
        (floats(2, 4), floats(2, 5), "dimension 1 must be 5, not 4"),
        (floats(is_stream=True), floats(), "takes one item"),
    ],
)
def test_ports_do_not_connect_when_an_item_might_not_fit(source, target, reason):
    found = why_not_connectable(source, target)

    assert found is not None
    assert reason in found[0]
    assert found[1]


@given(st.text(max_size=20))
def test_a_parsed_extent_is_written_as_it_was_read(text):
    try:
        extent = parse_extent(text)
    except ValueError:
        return
    assert parse_extent(str(extent)) == extent
