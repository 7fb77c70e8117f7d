"""Envelopes of Exchange: several messages joined into one, with the payloads of their items."""

from collections import deque
from typing import Final, TypeAlias, TypeVar

from stagewire.errors import PayloadCorruptError
from stagewire.frame import join, read_message
from stagewire.limits import CHUNK_BYTES, ENVELOPE_MESSAGES, HEADER_BYTES
from stagewire.v1 import gateway_pb2 as pb

Waiting: TypeAlias = "deque[tuple[pb.ExchangeMessage, memoryview | None]]"
"""Messages that wait to leave, each with the payload that its item points into."""

Envelope = TypeVar("Envelope", pb.ExchangeRequest, pb.ExchangeResponse)
_FIELD_BYTES: Final = 4
"""Tag and length of a message inside an envelope, which is shorter than two MiB."""


def take_envelope(waiting: Waiting, envelope: Envelope) -> bytes:
    """Moves as many messages as one envelope holds out of the queue; returns it in wire form."""
    payloads: list[memoryview] = []
    size = header_bytes = 0
    while waiting and len(envelope.messages) < ENVELOPE_MESSAGES:
        message, payload = waiting[0]
        if payload is not None:
            # The first always fits: a chunk is far smaller than a message may be.
            if payloads and size + payload.nbytes > CHUNK_BYTES:
                break
            message.item.payload_offset_bytes = size
        # The first always fits here too: no single message comes near the limit of them all.
        header_bytes += message.ByteSize() + _FIELD_BYTES
        if envelope.messages and header_bytes > HEADER_BYTES:
            break
        if payload is not None:
            payloads.append(payload)
            size += payload.nbytes
        waiting.popleft()
        envelope.messages.append(message)
    return join(envelope.SerializeToString(), payloads)


def open_envelope(message: bytes, envelope: Envelope) -> tuple[Envelope, memoryview]:
    """Parses the messages of an envelope; returns it and a view of its payload.

    Raises:
        PayloadCorruptError: the bytes are no envelope.
        MessageTooBigError: there is more of them than any envelope has.
    """
    return read_message(message, envelope, PayloadCorruptError)
