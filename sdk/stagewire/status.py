"""Failures between exceptions and the wire: one trailer, one message."""

import contextlib
from collections.abc import Iterable
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from stagewire.errors import (
    CancelledError,
    Code,
    CoordinatorUnreachableError,
    DeadlineExceededError,
    InternalFaultError,
    MessageTooBigError,
    StageError,
    failure_class,
)
from stagewire.limits import FAILURE_TEXT_BYTES
from stagewire.v1 import tensor_pb2 as pb

TRAILER: Final = "stagewire-failure-bin"
DOMAIN: Final = "stagewire"

_FACT_BYTES: Final = 512
_FACTS_BYTES: Final = 2 << 10
"""Message and facts together must stay below `METADATA_BYTES`, or gRPC drops the whole trailer."""

GRPC_CODES: Final = {
    code: next(status for status in grpc.StatusCode if status.value[0] == code.value)
    for code in Code
}
_WITHOUT_TRAILER: Final = {
    grpc.StatusCode.DEADLINE_EXCEEDED: (DeadlineExceededError, "the deadline passed"),
    grpc.StatusCode.CANCELLED: (CancelledError, "the call was cancelled"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (MessageTooBigError, "a message is over its limit"),
    grpc.StatusCode.UNAVAILABLE: (CoordinatorUnreachableError, "no coordinator answers there"),
}


def to_message(error: StageError) -> pb.Failure:
    """Returns the wire form of a failure: texts cut, and facts dropped, that are over a limit."""
    facts = []
    left_bytes = _FACTS_BYTES
    for name, value in error.facts.items():
        fact = pb.Fact(name=name, value=_bounded(value, _FACT_BYTES))
        left_bytes -= fact.ByteSize()
        if left_bytes < 0:
            break
        facts.append(fact)
    return pb.Failure(
        reason=error.reason,
        domain=DOMAIN,
        message=_bounded(error.message, FAILURE_TEXT_BYTES),
        facts=facts,
        retry_delay_ms=error.retry_delay_ms,
        code=int(error.code),
    )


def from_message(failure: pb.Failure) -> StageError:
    """Returns the exception of a failure; one of an unknown reason keeps its text."""
    cls = failure_class(failure.reason)
    error = cls(
        failure.message,
        retry_delay_ms=failure.retry_delay_ms if failure.HasField("retry_delay_ms") else None,
    )
    error.facts.update({fact.name: fact.value for fact in failure.facts})
    return error


def from_rpc_error(error: grpc.RpcError) -> StageError:
    """Returns the failure that a call ended with: the server's own, or what gRPC itself found."""
    # Every RpcError of a call is also a Call; gRPC's typing says so only in part, hence Any.
    call: Any = error
    return from_end(call.code(), call.trailing_metadata())


def from_end(code: grpc.StatusCode, trailers: Iterable[tuple[str, Any]] | None) -> StageError:
    """Returns the failure of a status and its trailers, whose values are texts or bytes."""
    for key, value in trailers or ():
        if key == TRAILER:
            # A trailer that cannot be read is not ours; the code still says something.
            with contextlib.suppress(DecodeError):
                return from_message(pb.Failure.FromString(value))
    cls, text = _WITHOUT_TRAILER.get(
        code, (InternalFaultError, f"the call failed with {code.name}")
    )
    return cls(text)


def _bounded(text: str, limit_bytes: int) -> str:
    # A lone surrogate, as in a file name that is not UTF-8, would fail in the serializer.
    raw = text.encode(errors="replace")
    if len(raw) <= limit_bytes:
        return raw.decode()
    return raw[:limit_bytes].decode(errors="ignore") + " ..."
