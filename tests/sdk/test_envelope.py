"""Envelopes: whatever waits arrives, in order, and none is larger than its receiver takes."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import status
from stagewire.envelope import open_envelope, take_envelope
from stagewire.errors import (
    FieldInvalidError,
    MessageTooBigError,
    PayloadCorruptError,
    StageFaultError,
)
from stagewire.frame import join, read_message
from stagewire.limits import (
    CHUNK_BYTES,
    CONTROL_MESSAGE_BYTES,
    ENVELOPE_MESSAGES,
    HEADER_BYTES,
    MESSAGE_BYTES,
)
from stagewire.v1 import coordinator_pb2, tensor_pb2
from stagewire.v1 import gateway_pb2 as pb

pytestmark = pytest.mark.unit


def failure(number, size):
    error = StageFaultError("m" * size, fact="f" * 500)
    return pb.ExchangeMessage(
        execution_id=number,
        execution_failed=pb.ExecutionFailed(failure=status.to_message(error)),
    )


def item(number, size):
    descriptor = tensor_pb2.Item(port="x" * 64, sequence=number, payload_size_bytes=size)
    return pb.ExchangeMessage(execution_id=number, item=descriptor)


MESSAGES = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0, 1, 4096, CHUNK_BYTES])), max_size=150
)


@given(MESSAGES)
def test_all_that_waits_arrives_in_order_with_its_payload(kinds):
    waiting = deque()
    for number, (is_item, size) in enumerate(kinds):
        if is_item:
            waiting.append((item(number, size), memoryview(bytes([number % 256]) * size)))
        else:
            waiting.append((failure(number, min(size, 4096)), None))
    seen = []
    while waiting:
        envelope, payload = open_envelope(
            take_envelope(waiting, pb.ExchangeRequest()), pb.ExchangeRequest()
        )
        assert 1 <= len(envelope.messages) <= ENVELOPE_MESSAGES
        for message in envelope.messages:
            number = message.execution_id
            seen.append(number)
            if message.HasField("item"):
                start = message.item.payload_offset_bytes
                part = payload[start : start + message.item.payload_size_bytes]
                assert bytes(part) == bytes([number % 256]) * kinds[number][1]
    assert seen == list(range(len(kinds)))


def test_no_message_is_too_large_for_an_envelope_of_its_own():
    # A stage's ports arrive in one order, and its start names a credit for each of them.
    order = pb.LoadStage()
    start = pb.StartExecution(stage_id="s" * 64, trace_id="t" * 64)
    while order.ByteSize() < CONTROL_MESSAGE_BYTES:
        name = f"p{len(order.outputs)}"
        order.outputs.add(name=name, data_type=1)
        start.credits.add(port=name, items=64, size_bytes=8 << 20)
    for message in (
        pb.ExchangeMessage(execution_id=2**63, start_execution=start),
        failure(2**63, 1 << 20),
    ):
        envelope = take_envelope(deque([(message, None)]), pb.ExchangeRequest())
        assert open_envelope(envelope, pb.ExchangeRequest())[0].messages == [message]


def test_an_envelope_of_more_than_any_sender_makes_is_refused_before_it_is_read():
    empty = b"\x0a\x00"
    allowed = empty * (HEADER_BYTES // 2)
    assert len(open_envelope(allowed, pb.ExchangeRequest())[0].messages) == HEADER_BYTES // 2
    with pytest.raises(MessageTooBigError, match=f"more than {HEADER_BYTES} bytes beside"):
        open_envelope(allowed + empty, pb.ExchangeRequest())


@pytest.mark.parametrize("failure", [FieldInvalidError, PayloadCorruptError])
@pytest.mark.parametrize(
    "message", [b"\xff\xff\xff", b"\x0a", b"\x0a\x03\xff\xff\xff", b"\x0a\x01"], ids=repr
)
def test_whatever_cannot_be_read_is_the_failure_that_the_reader_names(message, failure):
    with pytest.raises(failure) as caught:
        read_message(message, coordinator_pb2.RunRequest(), failure)
    assert type(caught.value) is failure


def test_a_payload_over_its_limit_is_too_big_whoever_sends_it():
    message = join(b"", [bytes(MESSAGE_BYTES + 1)])
    for kind in (coordinator_pb2.RunRequest, coordinator_pb2.InferRequest, pb.ExchangeRequest):
        with pytest.raises(MessageTooBigError, match=f"carries {MESSAGE_BYTES + 1} bytes"):
            read_message(message, kind(), FieldInvalidError)
