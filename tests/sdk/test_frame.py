"""Messages joined and split by hand, against what generated code makes of them."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewire import frame
from stagewire.errors import MessageTooBigError, PayloadCorruptError
from stagewire.v1 import coordinator_pb2, gateway_pb2

pytestmark = pytest.mark.unit

PAYLOADS = st.lists(st.binary(max_size=300), max_size=4)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def run_requests(draw):
    request = coordinator_pb2.RunRequest()
    request.open.pipeline = draw(NAMES)
    request.open.outputs.extend(draw(st.lists(NAMES, max_size=3)))
    for sequence in draw(st.lists(st.integers(0, 2**64 - 1), max_size=3)):
        request.items.add(port=draw(NAMES), sequence=sequence, payload_size_bytes=3)
    return request


@given(run_requests(), PAYLOADS)
def test_a_joined_message_is_what_generated_code_writes(request_, pieces):
    joined = frame.join(request_.SerializeToString(), pieces)
    request_.payload = b"".join(pieces)
    assert joined == request_.SerializeToString()
    assert len(joined) <= request_.ByteSize() + frame.OVERHEAD_BYTES


@given(run_requests(), PAYLOADS)
def test_a_message_of_generated_code_is_split(request_, pieces):
    header = request_.SerializeToString()
    request_.payload = b"".join(pieces)
    head, payload = frame.split(request_.SerializeToString())
    assert bytes(head) == header
    assert payload == request_.payload


def test_a_header_alone_is_not_copied():
    message = coordinator_pb2.RunRequest(open={"pipeline": "voice"}).SerializeToString()
    head, payload = frame.split(message)
    assert head is message
    assert payload.nbytes == 0


@given(st.data())
def test_fields_may_stand_in_any_order_and_repeat(data):
    fields = data.draw(
        st.lists(
            st.one_of(
                run_requests().map(lambda request: request.SerializeToString()),
                st.binary(max_size=200).map(
                    lambda raw: coordinator_pb2.RunRequest(payload=raw).SerializeToString()
                ),
                # Fields of a newer version, of each wire type.
                st.sampled_from([b"\xa0\x06\x05", b"\xa5\x06abcd", b"\xa1\x06abcdefgh"]),
            ),
            max_size=6,
        )
    )
    message = b"".join(fields)
    expected = coordinator_pb2.RunRequest.FromString(message)
    head, payload = frame.split(message)
    assert payload == expected.payload
    parsed = coordinator_pb2.RunRequest.FromString(bytes(head))
    expected.ClearField("payload")
    assert parsed == expected


def test_the_last_payload_holds():
    first = coordinator_pb2.RunRequest(payload=b"first").SerializeToString()
    header = coordinator_pb2.RunRequest(open={"pipeline": "voice"}).SerializeToString()
    second = coordinator_pb2.RunRequest(payload=b"second").SerializeToString()
    head, payload = frame.split(first + header + second)
    assert bytes(head) == header
    assert payload == b"second"


@pytest.mark.parametrize("field", [b"\x0a\x00", b"\x7a\x00", b"\x08\x01"])
def test_what_stands_beside_a_payload_is_read_no_further_than_its_limit(field):
    # The garbage at the end is never reached.
    message = field * 52 + b"\xff" * 20
    with pytest.raises(MessageTooBigError, match="more than 100 bytes beside"):
        frame.split(message, 100)
    with pytest.raises(PayloadCorruptError):
        frame.split(field * 50 + b"\xff" * 20, 100)


def test_only_the_last_payload_does_not_count_as_beside_it():
    payload = b"\x7a\x64" + bytes(100)
    assert frame.split(b"\x08\x01" + payload, 2)[1].nbytes == 100
    with pytest.raises(MessageTooBigError):
        frame.split(payload + payload, 100)


@settings(max_examples=500)
@given(st.binary(max_size=60))
def test_garbage_is_corrupt_or_a_message_and_nothing_else(raw):
    try:
        head, payload = frame.split(raw)
    except PayloadCorruptError:
        return
    assert len(head) + payload.nbytes <= len(raw)
    try:
        whole = gateway_pb2.ExchangeRequest.FromString(raw)
    except DecodeError:
        return
    assert payload == whole.payload


@given(run_requests(), st.binary(min_size=1, max_size=50), st.data())
def test_a_message_that_is_cut_inside_its_payload_is_corrupt(request_, payload, data):
    whole = frame.join(request_.SerializeToString(), [payload])
    cut = data.draw(st.integers(1, len(payload)))
    with pytest.raises(PayloadCorruptError):
        frame.split(whole[:-cut])


@pytest.mark.parametrize(
    "raw",
    [
        b"\x7a",
        b"\x7a\x05abc",
        b"\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80" * 11,
        b"\x0b",
        b"\x0f",
        b"\x0d\x00",
        b"\x09\x00",
    ],
)
def test_fields_that_end_early_are_corrupt(raw):
    with pytest.raises(PayloadCorruptError):
        frame.split(raw)
