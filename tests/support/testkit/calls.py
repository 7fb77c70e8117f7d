"""Calls of services without the client: any token, any bytes."""

from collections.abc import Iterable
from typing import Any

import grpc

from stagewire import status
from stagewire.channel import open_channel
from stagewire.errors import StageError

SECONDS = 30.0


def _metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return () if token is None else (("authorization", f"Bearer {token}"),)


def unary(address: str, method: str, message: bytes = b"", *, token: str | None = None) -> bytes:
    """Sends one message as it is; returns the answer as it is, or raises the failure."""
    with open_channel(address) as channel:
        try:
            call: Any = channel.unary_unary(method)
            return call(message, metadata=_metadata(token), timeout=SECONDS)
        except grpc.RpcError as error:
            raise status.from_rpc_error(error) from None


def stream(
    address: str, method: str, messages: Iterable[bytes] = (), *, token: str | None = None
) -> list[bytes]:
    """Sends messages and ends the stream; returns every answer, or raises the failure."""
    with open_channel(address) as channel:
        try:
            call: Any = channel.stream_stream(method)
            return list(call(iter(messages), metadata=_metadata(token), timeout=SECONDS))
        except grpc.RpcError as error:
            raise status.from_rpc_error(error) from None


def code_of(address: str, method: str, *, token: str | None = None) -> grpc.StatusCode:
    """Returns the code that a call with an empty message ends with."""
    with open_channel(address) as channel:
        call: Any = channel.stream_stream(method)
        try:
            list(call(iter([b""]), metadata=_metadata(token), timeout=SECONDS))
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK


def reason_of(function: Any, *values: Any, **named: Any) -> str:
    """Returns the reason that a call fails with."""
    try:
        function(*values, **named)
    except StageError as error:
        return error.reason
    return "OK"
