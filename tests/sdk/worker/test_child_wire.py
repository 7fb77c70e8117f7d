"""Frames between a worker and a child: whole values, and what is done with what is no frame."""

import math
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from stagewire.errors import StageFaultError, StageStartingError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType, encode
from stagewire.worker.child_order import ChildOrder
from stagewire.worker.child_wire import ChildWire, Frame, Kind, WireError
from stagewire.worker.executor import StageOrder
from stagewire.worker.fake import small_item

pytestmark = pytest.mark.unit


@pytest.fixture
def ends():
    ours, theirs = map(ChildWire, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def raw():
    """One end as a wire, the other as a socket."""
    ours, theirs = socket.socketpair()
    wire = ChildWire(ours)
    with theirs:
        yield wire, theirs
    wire.close()


@pytest.mark.parametrize("data_type", DataType)
@pytest.mark.parametrize("shape", [(), (Dimension("", 3),), (Dimension("", 0), Dimension("", 2))])
def test_an_item_of_every_type_arrives_whole(ends, data_type, shape):
    value = small_item(Port("x", data_type, shape))

    ends[0].send_item(7, "x", value)
    frame = ends[1].receive()

    assert (frame.kind, frame.execution) == (Kind.ITEM, 7)
    port, received = frame.item()
    assert port == "x"
    descriptor, payload = encode(received)
    assert descriptor == encode(value)[0]
    assert bytes(payload) == bytes(encode(value)[1])


def test_an_item_larger_than_any_buffer_arrives_in_one_frame(ends):
    value = np.arange(4_000_000, dtype=np.float32)
    sender = threading.Thread(target=ends[0].send_item, args=(1, "x", value))
    sender.start()

    received = ends[1].receive().item()[1]
    sender.join()

    assert np.array_equal(received, value)
    assert not received.flags.writeable


def test_a_failure_keeps_its_class_its_facts_and_its_delay(ends):
    ends[0].send_failure(3, StageStartingError("wait", retry_delay_ms=20, stage="one"))
    failure = ends[1].receive().failure()

    assert isinstance(failure, StageStartingError)
    assert (failure.message, failure.retry_delay_ms) == ("wait", 20)
    assert failure.facts == {"stage": "one"}


def test_a_failure_with_a_long_text_is_cut(ends):
    ends[0].send_failure(3, StageFaultError("x" * 100_000, long="y" * 100_000))

    failure = ends[1].receive().failure()

    assert len(failure.message) + len(failure.facts["long"]) < 5_000


def test_a_closed_end_is_the_end(ends):
    ends[0].close()

    assert ends[1].receive() is None
    with pytest.raises(WireError):
        ends[1].send(Kind.CANCEL, 1)


def test_a_frame_that_is_cut_off_is_the_end(raw):
    wire, theirs = raw
    theirs.send(b"\x53\x57\x10")
    theirs.close()

    assert wire.receive() is None


@pytest.mark.parametrize(
    "head",
    [
        bytes(20),
        os.urandom(20),
        b"\x53\x57\x63" + bytes(17),
        b"\x53\x57\x10\0" + bytes(4) + b"\xff\xff\xff\xff" + bytes(8),
        b"\x53\x57\x10\0" + bytes(8) + b"\0\0\0\0\0\0\0\x7f",
    ],
    ids=["zeros", "noise", "kind", "header", "payload"],
)
def test_what_is_no_frame_is_refused_before_anything_is_allocated(raw, head):
    wire, theirs = raw
    theirs.send(head)

    with pytest.raises(WireError):
        wire.receive()


@pytest.mark.parametrize(
    "read",
    [
        lambda frame: frame.item(),
        lambda frame: frame.failure(),
        lambda frame: frame.text(),
    ],
    ids=["item", "failure", "text"],
)
def test_a_header_that_makes_no_sense_is_refused(read):
    with pytest.raises(WireError):
        read(Frame(Kind.ITEM, 1, b"\xff\xfe{}", memoryview(b"")))


def test_a_failure_of_another_form_is_refused():
    for header in (b"[]", b"{}", b'{"reason": []}', b'{"reason": "A", "message": 1}', b"1"):
        with pytest.raises(WireError):
            Frame(Kind.FAILED, 1, header, memoryview(b"")).failure()


def test_a_sender_that_is_not_read_may_give_up_and_then_nothing_more_is_sent(raw):
    wire, _ = raw

    def give_up():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        wire.send_item(1, "x", np.zeros(4_000_000, np.uint8), waiting=give_up)
    with pytest.raises(WireError):
        wire.send(Kind.CANCEL, 1)


@pytest.mark.parametrize("hang_seconds", [5.0, math.inf])
def test_an_order_arrives_as_it_was(hang_seconds):
    order = StageOrder(
        "one",
        "function",
        "cpu",
        artifact_format="onnx:fp32",
        files={"a/b.onnx": Path("/models/a/b.onnx")},
        function="f",
        options={"threshold": 0.5, "list": [1, {"a": None}]},
        inputs=(Port("x", DataType.INT4, (Dimension("", 2), Dimension("n", 8)), True),),
        outputs=(Port("y", DataType.UTF8),),
        thread_count=2,
        concurrency=3,
        budget_bytes=1 << 30,
        hang_timeout_seconds=hang_seconds,
    )
    told = ChildOrder("module:function", 42, order)

    assert ChildOrder.from_json(told.to_json()) == told
