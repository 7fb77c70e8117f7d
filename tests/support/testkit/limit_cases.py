"""The table of limits, first part: what comes over the wire, and what keeps account of it."""

from collections import deque
from pathlib import Path
from typing import Any, Final

import numpy as np

from coordinator.gateway.service import parse_control
from stagewire import status
from stagewire.chunks import ChunkOrder, chunks_of, descriptor_of
from stagewire.descriptor import DataType, TensorDescriptor, check_descriptor
from stagewire.envelope import open_envelope, take_envelope
from stagewire.errors import (
    FieldInvalidError,
    MessageTooBigError,
    PayloadCorruptError,
    StageFaultError,
)
from stagewire.frame import read_message
from stagewire.limits import CHUNK_BYTES
from stagewire.ports import Port
from stagewire.tensor import encode
from stagewire.v1 import coordinator_pb2, gateway_pb2, tensor_pb2
from testkit.limit_table import Act, Bounded, Refused, sparse

_FIELD: Final = b"\xfa\x7d"
"""Tag of a field that no message has."""


def _digits(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _padded(size: int) -> bytes:
    """A message of so many bytes in one field of a newer version."""
    head = next(
        _FIELD + _digits(size - length)
        for length in range(3, 9)
        if len(_FIELD + _digits(size - length)) == length
    )
    return head + bytes(size - len(head))


# --- messages ---


def _whole_without_checksum(size: int, _: Path) -> Act:
    item = item_of(DataType.UINT8, (size,), size, payload_size_bytes=min(size, 2**32 - 1))
    return lambda: ChunkOrder("x").accept(item)


def _payload(size: int, folder: Path) -> Act:
    head = b"\x7a" + _digits(size)
    if size >= 1 << 60:
        message: Any = head
    else:
        message = sparse(folder / "message", len(head) + size, head)
    return lambda: read_message(message, coordinator_pb2.InferRequest(), FieldInvalidError)


def _beside(field: bytes, folder: Path, size: int) -> Act:
    # Small fields of the kind, after one that makes up the size, then zeros that are never reached.
    fields = min(size, 1 << 22)
    first = _padded(4 + (fields - 4) % len(field))
    head = first + field * ((fields - len(first)) // len(field))
    message = sparse(folder / "message", max(size, len(head)), head)
    return lambda: open_envelope(message, gateway_pb2.ExchangeRequest())


def _control(size: int, folder: Path) -> Act:
    message: Any = _padded(size) if size < 1 << 20 else sparse(folder / "message", size)
    return lambda: parse_control(message)


def _largest_chunk(size: int, _: Path) -> Any:
    value = np.zeros(size, np.uint8)
    descriptor, payload = encode(value)
    return lambda: max(piece.payload.nbytes for piece in chunks_of("x", 0, descriptor, payload))


def _messages_of_an_envelope(count: int, _: Path) -> Any:
    end = gateway_pb2.ExchangeMessage(end_of_port={"port": "x"})
    waiting: Any = deque((end, None) for _ in range(count))

    def take() -> int:
        return len(
            gateway_pb2.ExchangeRequest.FromString(
                take_envelope(waiting, gateway_pb2.ExchangeRequest())
            ).messages
        )

    return take


def _failure_text(size: int, _: Path) -> Any:
    error = StageFaultError("m" * size)
    return lambda: len(status.to_message(error).message)


# --- tensors ---


def item_of(data_type: DataType, shape: tuple[int, ...], size: int, **more: Any) -> tensor_pb2.Item:
    """An item as a stranger may describe it."""
    tensor = tensor_pb2.TensorDescriptor(data_type=int(data_type), shape=shape, size_bytes=size)  # type: ignore[arg-type]
    return tensor_pb2.Item(port="x", tensor=tensor, **more)


def _described(data_type: DataType, shape: tuple[int, ...], size: int) -> Act:
    if min(*shape, size, 0) < 0:
        # Not even a message can say that, but a descriptor can.
        return lambda: check_descriptor(TensorDescriptor(data_type, shape, size))
    item = item_of(data_type, shape, size)
    return lambda: descriptor_of(item)


def _encoded(element: Any, shape: tuple[int, ...]) -> Act:
    # One element that is repeated: no bytes of it exist before it is copied.
    value = np.broadcast_to(element, shape)
    return lambda: encode(value)


def _text_item(size: int, _: Path) -> Act:
    port = Port("x", DataType.UTF8)
    return lambda: port.check(TensorDescriptor(DataType.UTF8, (), size + 4))


CASES: Final[tuple[Refused | Bounded, ...]] = (
    Refused(
        "INLINE_BYTES",
        "item without a checksum",
        _whole_without_checksum,
        (2**31, 2**63),
        (PayloadCorruptError, MessageTooBigError),
    ),
    Bounded(
        "CHUNK_BYTES", "chunk that is cut", _largest_chunk, (CHUNK_BYTES, CHUNK_BYTES + 1, 9 << 20)
    ),
    Refused(
        "MESSAGE_BYTES",
        "payload of a message",
        _payload,
        (2**31, 2**63),
        (MessageTooBigError, FieldInvalidError),
    ),
    *(
        Refused(
            "HEADER_BYTES",
            f"{what} fields of an envelope",
            lambda size, folder, field=field: _beside(field, folder, size),  # type: ignore[misc]
            (2**22, 2**31),
            MessageTooBigError,
            "beside its payload",
        )
        for what, field in (("empty", b"\x0a\x00"), ("unknown", b"\xf8\x01\x00"))
    ),
    Refused(
        "CONTROL_MESSAGE_BYTES", "message of Attach", _control, (2**22, 2**31), MessageTooBigError
    ),
    Bounded("ENVELOPE_MESSAGES", "messages joined", _messages_of_an_envelope, (64, 65, 5000)),
    Bounded("FAILURE_TEXT_BYTES", "text of a failure", _failure_text, (4096, 4097, 2**24), slack=4),
    Refused(
        "TENSOR_RANK",
        "shape of an item",
        lambda size, _: _described(DataType.UINT8, (1,) * size, 1),
        (2**16,),
        MessageTooBigError,
        "rank",
    ),
    Refused(
        "TENSOR_DIMENSION",
        "extent beside an extent of zero",
        lambda size, _: _described(DataType.FLOAT64, (0, size), 0),
        (2**61, 2**63, -1),
        MessageTooBigError,
    ),
    Refused(
        "TENSOR_DIMENSION",
        "product of all extents",
        lambda size, _: _described(DataType.FLOAT64, (0, 2**20, size >> 20, 1 + (size & 1)), 0),
        (2**61,),
        MessageTooBigError,
    ),
    Refused(
        "TENSOR_BYTES",
        "size of an item",
        lambda size, _: _described(DataType.UINT8, (size,), size),
        (2**31, 2**63, -1),
        MessageTooBigError,
    ),
    Refused(
        "TENSOR_BYTES",
        "packed elements of an item",
        lambda size, _: _described(DataType.INT4, (size,), (size + 1) // 2),
        (2**31, 2**63),
        MessageTooBigError,
    ),
    Refused(
        "TENSOR_BYTES",
        "size that the shape contradicts",
        lambda size, _: _described(DataType.UINT8, (1,), size),
        (2**31, 2**63),
        MessageTooBigError,
    ),
    Refused(
        "TENSOR_BYTES",
        "array that is sent",
        # One of the largest size would really be sent, and copied.
        lambda size, _: _encoded(np.uint8(1), (size,) if size > 2**30 else (1,)),
        (2**31, 2**62),
        MessageTooBigError,
    ),
    Refused(
        "STRING_ELEMENTS",
        "strings of an item",
        lambda size, _: _described(DataType.UTF8, (size,), 4 * size),
        (2**28, 2**31, 2**61),
        MessageTooBigError,
    ),
    Refused(
        "STRING_ELEMENTS",
        "strings that are sent",
        lambda size, _: _encoded(np.array("", object), (size,)),
        (2**31, 2**59),
        MessageTooBigError,
    ),
    Refused("TEXT_BYTES", "text of an item", _text_item, (2**29, 2**31, 2**63), MessageTooBigError),
)
