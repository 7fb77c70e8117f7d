"""A link of limited speed between loopback and loopback, as a process of its own.

Run as a program with an address and a speed: relays every connection to that address, all of them
together at that many bytes a second in each direction, and prints the port that it listens on.
"""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PIECE_BYTES: Final = 64 << 10


class Bucket:
    """One direction of the link: whoever wants to send takes the next free moment of it."""

    def __init__(self, bytes_per_second: float) -> None:
        self._speed = bytes_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, size_bytes: int) -> None:
        with self._lock:
            begins = max(time.monotonic(), self._free_at)
            self._free_at = begins + size_bytes / self._speed
        time.sleep(max(0.0, self._free_at - time.monotonic()))


def pump(source: socket.socket, target: socket.socket, bucket: Bucket) -> None:
    buffer = memoryview(bytearray(_PIECE_BYTES))
    with contextlib.suppress(OSError):
        while size := source.recv_into(buffer):
            bucket.take(size)
            target.sendall(buffer[:size])
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def main(address: str, speed: str) -> None:
    host, port = address.rsplit(":", 1)
    there, back = Bucket(float(speed)), Bucket(float(speed))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((host, int(port)))
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            print("connection", flush=True)
            for ends in ((near, far, there), (far, near, back)):
                threading.Thread(target=pump, args=ends, daemon=True).start()


@dataclass
class Link:
    """A relay that runs."""

    address: str
    connections: int = 0
    """How many it had; known at the end."""


@contextlib.contextmanager
def relay(address: str, bytes_per_second: float) -> Iterator[Link]:
    """Relays to an address around the block."""
    command = [sys.executable, str(Path(__file__)), address, str(bytes_per_second)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            link = Link(f"127.0.0.1:{process.stdout.readline().strip()}")
            yield link
        finally:
            process.kill()
        link.connections = process.stdout.read().count("connection")


if __name__ == "__main__":
    main(*sys.argv[1:])
