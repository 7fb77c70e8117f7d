"""What any bytes may do to a reader: nothing, or one of the failures that it names.

Each target takes the bytes of one message or file as a stranger might send them. It returns, or
raises what is a defect: a failure of no type, or a promise about what was read that does not hold.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError

from coordinator.plan.loading import parse_plan
from stagewire import frame
from stagewire.chunks import descriptor_of, payload_of
from stagewire.envelope import open_envelope
from stagewire.errors import FieldInvalidError, PayloadCorruptError, PlanInvalidError, StageError
from stagewire.items import Assembler
from stagewire.limits import HEADER_BYTES, MESSAGE_BYTES
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType, decode, encode
from stagewire.v1 import coordinator_pb2, gateway_pb2

# Small enough that no item, however large it says it is, takes much memory.
PORTS: Final = {
    port.name: port
    for port in (
        Port("bytes", DataType.UINT8, (Dimension("n", 3 << 20),), is_stream=True),
        Port("floats", DataType.FLOAT32, (Dimension("n", 1 << 16), Dimension("m", 16)), True),
        Port("packed", DataType.INT4, (Dimension("n", 1 << 18),), is_stream=True),
        Port("text", DataType.UTF8, is_stream=True),
    )
}
_PROBLEM: Final = re.compile(r"plan\.yaml(?::(\d+):\d+: .+: .+; .+|: \d+ more .+ are not shown)")
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def split_frame(raw: bytes) -> None:
    """A message is split as generated code reads it, or is corrupt."""
    try:
        header, payload = frame.split(raw)
    except PayloadCorruptError:
        return
    assert len(header) + payload.nbytes <= len(raw)
    for kind in (coordinator_pb2.RunRequest, gateway_pb2.ExchangeRequest):
        try:
            whole = kind.FromString(raw)
        except DecodeError:
            continue
        assert whole.payload == payload
        parsed = kind.FromString(bytes(header))
        parsed.payload = whole.payload
        assert parsed == whole
        # Joined again, it is the same message.
        assert kind.FromString(frame.join(bytes(header), [payload])) == whole


def read_request(raw: bytes) -> None:
    """A client's request is read, or refused; its items are values, or damaged."""
    try:
        request, payload = frame.read_message(raw, coordinator_pb2.RunRequest(), FieldInvalidError)
    except StageError:
        return
    assert payload.nbytes <= MESSAGE_BYTES
    assert request.ByteSize() <= HEADER_BYTES
    for item in request.items:
        try:
            descriptor = descriptor_of(item)
            piece = payload_of(item, payload)
            value = decode(descriptor, piece)
        except StageError:
            continue
        # One value has one form: what was read is written the same.
        again, written = encode(value)
        assert again == descriptor
        assert written == piece


def open_exchange(raw: bytes) -> None:
    """An envelope is opened, or refused; its messages point into its payload, or are damaged."""
    try:
        envelope, payload = open_envelope(raw, gateway_pb2.ExchangeRequest())
    except StageError:
        return
    assert payload.nbytes <= MESSAGE_BYTES
    for message in envelope.messages:
        if message.WhichOneof("message") != "item":
            continue
        try:
            piece = payload_of(message.item, payload)
        except PayloadCorruptError:
            continue
        assert piece.nbytes == message.item.payload_size_bytes


def assemble_items(raw: bytes) -> None:
    """The items of an envelope are put together as a worker does it, or the first fault ends it."""
    try:
        envelope, payload = open_envelope(raw, gateway_pb2.ExchangeRequest())
    except StageError:
        return
    assemblers = {name: Assembler(name) for name in PORTS}
    counts = dict.fromkeys(PORTS, 0)
    for message in envelope.messages:
        item = message.item
        if item.port not in PORTS:
            continue
        port, assembler = PORTS[item.port], assemblers[item.port]
        try:
            if assembler.is_between_items:
                port.check(descriptor_of(item))
            received = assembler.accept(item, payload)
            if received is None:
                continue
            assert (received.port, received.sequence) == (port.name, counts[port.name])
            counts[port.name] += 1
            assert received.payload.nbytes == received.descriptor.size_bytes <= port.largest_bytes
            value = received.value()
        except StageError:
            return
        assert encode(value)[0] == received.descriptor
        assert math.prod(received.descriptor.shape) >= 0


def read_plan(raw: bytes) -> None:
    """A plan is read, or each of its problems has a place; a plan that is written is read back."""
    try:
        plan = parse_plan(raw, Path("plan.yaml")).plan
    except PlanInvalidError as refusal:
        lines = refusal.message.splitlines()
        assert lines
        last = len(_LINE_BREAK.split(raw.decode("utf-8", "replace")))
        for line in lines:
            found = _PROBLEM.fullmatch(line)
            assert found, line
            assert found[1] is None or 1 <= int(found[1]) <= last, line
        return
    written = plan.model_dump_json(by_alias=True, exclude_none=True)
    assert parse_plan(written.encode(), Path("plan.yaml")).plan == plan


def find_a_defect(raw: bytes) -> None:
    """Has a defect, to show that one is found and kept."""
    assert not raw.startswith(b"!"), "this reader has a defect"


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "frame": split_frame,
    "tensor": read_request,
    "envelope": open_exchange,
    "items": assemble_items,
    "plan": read_plan,
}
CANARY: Final = "canary"
