"""Envelopes of Exchange: several messages joined into one, with the payloads of their items."""

from collections import deque
from typing import TypeAlias, TypeVar

from google.protobuf.message import DecodeError

from stagewire.errors import PayloadCorruptError
from stagewire.frame import join, split
from stagewire.limits import CHUNK_BYTES, ENVELOPE_MESSAGES
from stagewire.v1 import gateway_pb2 as pb

Waiting: TypeAlias = "deque[tuple[pb.ExchangeMessage, memoryview | None]]"
"""Messages that wait to leave, each with the payload that its item points into."""

Envelope = TypeVar("Envelope", pb.ExchangeRequest, pb.ExchangeResponse)


def take_envelope(waiting: Waiting, envelope: Envelope) -> bytes:
    """Moves as many messages as one envelope holds out of the queue; returns it in wire form."""
    payloads: list[memoryview] = []
    size = 0
    while waiting and len(envelope.messages) < ENVELOPE_MESSAGES:
        message, payload = waiting[0]
        if payload is not None:
            # The first always fits: a chunk is far smaller than a message may be.
            if payloads and size + payload.nbytes > CHUNK_BYTES:
                break
            message.item.payload_offset_bytes = size
            payloads.append(payload)
            size += payload.nbytes
        waiting.popleft()
        envelope.messages.append(message)
    return join(envelope.SerializeToString(), payloads)


def open_envelope(message: bytes, envelope: Envelope) -> tuple[Envelope, memoryview]:
    """Parses the messages of an envelope; returns it and a view of its payload.

    Raises:
        PayloadCorruptError: the bytes are no envelope.
    """
    header, payload = split(message)
    try:
        envelope.MergeFromString(bytes(header))
    except DecodeError as error:
        raise PayloadCorruptError("the bytes are no envelope") from error
    return envelope, payload
