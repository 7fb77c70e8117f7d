"""Items cut into chunks and put together."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import items
from stagewire.chunks import ChunkOrder, transport_of, whole_item
from stagewire.errors import FieldInvalidError, MessageTooBigError, PayloadCorruptError
from stagewire.items import Assembler
from stagewire.limits import CHUNK_BYTES, INLINE_BYTES
from stagewire.tensor import DataType, encode
from stagewire.v1 import tensor_pb2 as pb

pytestmark = pytest.mark.unit

LARGE = np.arange(CHUNK_BYTES * 2 + 5, dtype=np.uint8)


def chunks(value, sequence=0):
    return [
        (pb.Item.FromString(chunk.item.SerializeToString()), memoryview(bytes(chunk.payload)))
        for chunk in items.to_chunks("port", sequence, value)
    ]


def accept_all(assembler, pieces):
    return [assembler.accept(item, payload) for item, payload in pieces]


@pytest.mark.parametrize(
    ("size", "count", "transport"),
    [
        (0, 1, "inline"),
        (INLINE_BYTES, 1, "inline"),
        (INLINE_BYTES + 1, 1, "chunked"),
        (CHUNK_BYTES, 1, "chunked"),
        (CHUNK_BYTES + 1, 2, "chunked"),
        (CHUNK_BYTES * 2 + 5, 3, "chunked"),
    ],
)
def test_the_size_decides_how_an_item_travels(size, count, transport):
    value = np.arange(size, dtype=np.uint8)
    pieces = chunks(value)
    assert transport_of(size) == transport
    assert len(pieces) == count
    assert [item.HasField("tensor") for item, _ in pieces] == [True] + [False] * (count - 1)
    assert all(item.HasField("checksum") == (transport == "chunked") for item, _ in pieces)
    *partial, whole = accept_all(Assembler("port"), pieces)
    assert partial == [None] * (count - 1)
    assert np.array_equal(whole.value(), value)


@given(st.lists(st.integers(0, 3 * CHUNK_BYTES // 2), max_size=4))
def test_a_row_of_items_comes_back_in_order(sizes):
    assembler = Assembler("port")
    for sequence, size in enumerate(sizes):
        value = np.full(size, sequence, np.uint8)
        whole = accept_all(assembler, chunks(value, sequence))[-1]
        assert (whole.port, whole.sequence) == ("port", sequence)
        assert np.array_equal(whole.value(), value)
        assert assembler.is_between_items


def test_an_item_that_lies_whole_in_a_message_is_taken_from_its_place():
    value = np.arange(INLINE_BYTES + 8, dtype=np.uint8)
    descriptor, payload = encode(value)
    item = whole_item("port", 0, descriptor, payload, 3)
    whole = Assembler("port").accept(item, memoryview(b"abc" + bytes(payload) + b"d"))
    assert np.array_equal(whole.value(), value)


def test_a_small_item_is_a_view_of_its_message():
    item, _ = chunks(b"abcd")[0]
    message = bytearray(encode(b"abcd")[1])
    whole = Assembler("port").accept(item, memoryview(message))
    message[4:] = b"wxyz"
    assert whole.value() == b"wxyz"


# --- chunks that must not follow ---


def expect_corrupt(pieces, match):
    assembler = Assembler("port")
    with pytest.raises(PayloadCorruptError, match=match):
        accept_all(assembler, pieces)


def test_chunks_out_of_order_are_corrupt():
    first, second, third = chunks(LARGE)
    expect_corrupt([first, third, second], "must follow")


def test_a_repeated_chunk_is_corrupt():
    first, second, _ = chunks(LARGE)
    expect_corrupt([first, second, second], "must follow")


def test_chunks_that_overlap_are_corrupt():
    first, second, _ = chunks(LARGE)
    second[0].chunk_offset_bytes -= 1
    expect_corrupt([first, second], "must follow")


def test_a_gap_in_the_sequence_is_corrupt():
    expect_corrupt([*chunks(b"a", 0), *chunks(b"b", 2)], "must follow")


def test_an_item_that_starts_inside_another_is_corrupt():
    expect_corrupt([chunks(LARGE)[0], *chunks(b"b", 1)], "must follow")


def test_a_wrong_checksum_is_corrupt():
    item, payload = chunks(LARGE)[0]
    item.checksum ^= 1
    expect_corrupt([(item, payload)], "checksum")


def test_a_changed_byte_is_corrupt():
    item, payload = chunks(LARGE)[0]
    expect_corrupt([(item, memoryview(b"\xff" + bytes(payload[1:])))], "checksum")


def test_a_chunk_without_a_checksum_is_corrupt():
    item, payload = chunks(LARGE)[0]
    item.ClearField("checksum")
    expect_corrupt([(item, payload)], "no checksum")


def test_more_bytes_than_the_descriptor_says_are_corrupt():
    first, second, (item, payload) = chunks(LARGE)
    longer = bytes(payload) + b"!"
    item.payload_size_bytes += 1
    item.checksum = zlib.crc32(longer)
    expect_corrupt([first, second, (item, memoryview(longer))], "bytes of a tensor")


def test_a_cut_small_item_is_corrupt():
    item, payload = chunks(b"abcd")[0]
    item.payload_size_bytes -= 1
    expect_corrupt([(item, payload)], "bytes of a tensor")


def test_a_chunk_of_nothing_is_corrupt():
    item, _ = chunks(LARGE)[0]
    item.payload_size_bytes = 0
    item.checksum = 0
    expect_corrupt([(item, memoryview(b""))], "bytes of a tensor")


@pytest.mark.parametrize(("offset", "size"), [(1, 8), (9, 0), (0, 9), (2**32 - 1, 2**32 - 1)])
def test_a_chunk_that_points_outside_its_message_is_corrupt(offset, size):
    item, payload = chunks(b"abcd")[0]
    item.payload_offset_bytes, item.payload_size_bytes = offset, size
    expect_corrupt([(item, payload)], "outside")


def test_an_item_that_is_cut_off_is_known():
    assembler = Assembler("port")
    accept_all(assembler, chunks(LARGE)[:2])
    assert not assembler.is_between_items


@pytest.mark.parametrize("data_type", [0, max(DataType) + 1, 99])
def test_an_unknown_element_type_is_refused(data_type):
    item, payload = chunks(b"abcd")[0]
    item.tensor.data_type = data_type
    with pytest.raises(FieldInvalidError, match="element type"):
        Assembler("port").accept(item, payload)


def test_a_first_chunk_without_descriptor_is_refused():
    item, payload = chunks(b"abcd")[0]
    item.ClearField("tensor")
    with pytest.raises(FieldInvalidError, match="no descriptor"):
        Assembler("port").accept(item, payload)


@pytest.mark.parametrize("size", [2**30 + 1, 2**63, 2**64 - 1])
def test_a_tensor_over_the_limit_is_refused_before_memory_is_taken(size):
    item, payload = chunks(LARGE)[0]
    item.tensor.size_bytes = size
    with pytest.raises(MessageTooBigError):
        Assembler("port").accept(item, payload)


def test_the_order_is_checked_without_any_payload():
    order = ChunkOrder("port")
    assert [order.accept(item)[1] for item, _ in chunks(LARGE)] == [False, False, True]
    assert order.items == 1
    assert order.is_between_items
