"""The one place that builds gRPC channels and servers, and that knows the gaps in gRPC's typing.

Options and their reasons: `so_reuseport` off, or two servers share a port without an error;
`http2.ping_timeout_ms` beside keepalive, or a frozen peer is not seen for 20 s; one subchannel pool
a channel, or Attach and Exchange would share a connection; no retries of gRPC's own.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import grpc.aio

from stagewire.limits import CONCURRENT_CALLS, MESSAGE_BYTES, METADATA_BYTES

ServicerContext: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
"""Context of every servicer; the message types of a call are not known where it is used."""
RpcMethodHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""Handler of any shape, for interceptors."""
GenericRpcHandler: TypeAlias = "grpc.GenericRpcHandler[Any, Any]"
"""Handlers of one service."""

if TYPE_CHECKING:
    ServerInterceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    # Generic in gRPC's typing alone.
    ServerInterceptor = grpc.aio.ServerInterceptor

_FRAMING_BYTES = 64 << 10
_SIZES = [
    ("grpc.max_send_message_length", MESSAGE_BYTES + _FRAMING_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES + _FRAMING_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES),
]
_KEEPALIVE = [
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
_CHANNEL = [
    *_SIZES,
    *_KEEPALIVE,
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    # A proxy from the environment must never see loopback traffic.
    ("grpc.enable_http_proxy", 0),
]
_SERVER = [
    *_SIZES,
    *_KEEPALIVE,
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", CONCURRENT_CALLS),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
]


def open_channel(address: str) -> grpc.Channel:
    """Opens a channel for blocking callers; connects when first used."""
    return grpc.insecure_channel(address, options=_CHANNEL)


def open_aio_channel(address: str) -> grpc.aio.Channel:
    """Opens a channel of the running loop; connects when first used."""
    return grpc.aio.insecure_channel(address, options=_CHANNEL)


def open_stream(
    channel: grpc.aio.Channel,
    method: str,
    serializer: Callable[[Any], bytes] | None = None,
    deserializer: Callable[[bytes], Any] | None = None,
    *,
    token: str = "",
) -> Any:
    """Begins a call that streams both ways; without serializers its messages are bytes.

    The type of a call depends on its messages, which gRPC's typing cannot say for raw ones, hence
    Any.
    """
    call: Any = channel.stream_stream(method, serializer, deserializer)
    return call(metadata=(("authorization", f"Bearer {token}"),) if token else None)


async def write_raw(call: Any, message: bytes) -> bool:
    """Writes one message of a connected call of raw messages; False when the call has ended.

    gRPC's own `write` puts INTERNAL in the place of the status with which the other side has just
    ended the call, so that its reason would be lost. What it wraps leaves the status alone. The
    type of a call depends on its messages, hence Any.
    """
    try:
        await call._cython_call.send_serialized_message(message)
    except grpc.aio.InternalError:
        return False
    return True


def make_server(interceptors: list[Any]) -> grpc.aio.Server:
    """Makes a server of the running loop.

    Interceptors are `grpc.aio.ServerInterceptor`, which gRPC's typing leaves open, hence Any.
    """
    return grpc.aio.server(interceptors=interceptors, options=_SERVER)


def make_blocking_server(threads: ThreadPoolExecutor) -> grpc.Server:
    """Makes a server whose calls run on threads, for programs without a loop."""
    return grpc.server(threads, options=_SERVER)
