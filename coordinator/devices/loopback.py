"""Loopback: the network of this machine with itself, over which all its processes talk."""

import socket
from typing import Final

from coordinator.devices.probing import (
    PROBE_SECONDS,
    ProbeError,
    ProbeFailure,
    Unavailable,
    run_probe,
)

_ADDRESS: Final = "127.0.0.1"


def probe_loopback(limit_seconds: float = PROBE_SECONDS) -> Unavailable | None:
    """Connects to itself; returns why that cannot be, and None when it can."""

    def connect() -> None:
        try:
            with socket.create_server((_ADDRESS, 0)) as server:
                socket.create_connection(server.getsockname(), limit_seconds).close()
        except OSError as error:
            raise ProbeError(ProbeFailure.UNREADABLE, error.strerror or str(error)) from None

    return run_probe(_ADDRESS, connect, limit_seconds)
