"""What a worker and the child of one of its stages say to each other, over a socket of their own.

A frame is a head of fixed size, a header and a payload. A value travels as on the wire between
worker and coordinator, as descriptor and payload, but whole: little else waits behind it.
"""

import enum
import json
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from stagewire.chunks import descriptor_of, to_message
from stagewire.errors import StageError, failure_class
from stagewire.limits import HEADER_BYTES, TENSOR_BYTES
from stagewire.tensor import Value, decode, encode
from stagewire.v1 import tensor_pb2 as pb

TICK_SECONDS: Final = 0.05
"""How often a side that waits looks whether it should still wait."""
WINDOW_ITEMS: Final = 8
WINDOW_BYTES: Final = 1 << 20
"""What a child may send of one execution before its worker has passed it on."""
_HEAD: Final = struct.Struct("<HBxIIQ")
_MARK: Final = 0x5753
"""Begins each frame, so that what is none is seen as such."""

_AHEAD_BYTES: Final = 64 << 10
"""Read at once, so that a small frame costs one call of the operating system."""
_TEXT_CHARACTERS: Final = 4_000
_FACT_CHARACTERS: Final = 500


class Kind(enum.IntEnum):
    """What a frame says."""

    # Worker to child.
    LOAD = 1
    EXAMPLE = 2
    START = 3
    END = 4
    CREDIT = 5
    CANCEL = 6
    RELEASE = 7
    # Either way.
    ITEM = 16
    # Child to worker.
    PHASE = 32
    LOADED = 33
    WANT = 34
    STEP = 35
    DONE = 36
    ENDED = 37
    FAILED = 38

    @property
    def is_last(self) -> bool:
        """Whether nothing follows about its execution."""
        return self in (Kind.DONE, Kind.ENDED, Kind.FAILED)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: Kind
    execution: int
    header: bytes
    payload: memoryview

    def text(self) -> str:
        """Returns the header as a text.

        Raises:
            WireError: it is none.
        """
        try:
            return self.header.decode()
        except UnicodeDecodeError:
            raise WireError("a frame has a header that is no text") from None

    def item(self) -> tuple[str, Value]:
        """Returns port and value of an item.

        Raises:
            WireError: it is none.
        """
        try:
            item = pb.Item.FromString(self.header)
            return item.port, decode(descriptor_of(item), self.payload)
        except (DecodeError, StageError) as error:
            raise WireError("a frame has an item that cannot be read") from error

    def failure(self) -> StageError:
        """Returns a failure.

        Raises:
            WireError: it is none.
        """
        try:
            fields = json.loads(self.header)
            failure = failure_class(fields["reason"])(
                fields["message"], retry_delay_ms=fields["retry_delay_ms"]
            )
            failure.facts.update(fields["facts"])
        except (ValueError, LookupError, TypeError) as error:
            raise WireError("a frame has a failure that cannot be read") from error
        return failure


class WireError(Exception):
    """The other side is gone, or said something that is no frame; nothing more can be said."""


def no_longer_than(until: float) -> Callable[[], None]:
    """Returns what a send that waits looks at, so that it fails after a moment of the clock."""

    def look() -> None:
        if time.monotonic() > until:
            raise WireError("the child takes nothing")

    return look


class ChildWire:
    """One end of the socket. Any thread sends, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._readable, self._writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._readable.register(connection, selectors.EVENT_READ)
        self._writable.register(connection, selectors.EVENT_WRITE)
        self._sending = threading.Lock()
        self._is_broken = False
        self._buffer = memoryview(bytearray(_AHEAD_BYTES))
        self._ahead = self._buffer[:0]

    def send(
        self,
        kind: Kind,
        execution: int = 0,
        header: bytes = b"",
        payload: memoryview | None = None,
        *,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        """Sends one frame; `waiting` is called now and then while the other side takes nothing.

        Raises:
            WireError: the other side is gone; or `waiting` raised when a part had been sent.
        """
        size = 0 if payload is None else payload.nbytes
        head = _HEAD.pack(_MARK, kind, execution, len(header), size)
        pieces = [memoryview(head), memoryview(header)]
        if payload is not None:
            pieces.append(payload.cast("B"))
        with self._sending:
            if self._is_broken:
                raise WireError("a frame was cut off")
            # Only a frame that has left as a whole leaves the socket fit for the next one.
            self._is_broken = True
            self._send_all([piece for piece in pieces if piece.nbytes], waiting)
            self._is_broken = False

    def send_item(
        self,
        execution: int,
        port: str,
        value: Value,
        *,
        waiting: Callable[[], None] = lambda: None,
    ) -> int:
        """Sends one value; returns its bytes."""
        descriptor, payload = encode(value)
        header = pb.Item(port=port, tensor=to_message(descriptor)).SerializeToString()
        self.send(Kind.ITEM, execution, header, payload, waiting=waiting)
        return descriptor.size_bytes

    def send_failure(self, execution: int, failure: StageError) -> None:
        """Sends why something failed."""
        fields = {
            "reason": failure.reason,
            "message": failure.message[:_TEXT_CHARACTERS],
            "facts": {name: text[:_FACT_CHARACTERS] for name, text in failure.facts.items()},
            "retry_delay_ms": failure.retry_delay_ms,
        }
        self.send(Kind.FAILED, execution, json.dumps(fields).encode())

    def receive(self, waiting: Callable[[], None] | None = None) -> Frame | None:
        """Waits for the next frame; None when the other side has closed its end.

        Raises:
            WireError: what came is no frame.
        """
        head = self._read(_HEAD.size, waiting)
        if head is None:
            return None
        mark, kind, execution, header_bytes, payload_bytes = _HEAD.unpack(head)
        if (
            mark != _MARK
            or kind not in Kind._value2member_map_
            or header_bytes > HEADER_BYTES
            or payload_bytes > TENSOR_BYTES
        ):
            raise WireError("what came is no frame")
        header = self._read(header_bytes, waiting)
        payload = self._read(payload_bytes, waiting)
        if header is None or payload is None:
            return None
        return Frame(Kind(kind), execution, bytes(header), payload)

    def close(self) -> None:
        """Closes this end; by the side that receives, when the other one is gone."""
        with self._sending:
            self._is_broken = True
            self._readable.close()
            self._writable.close()
            self._connection.close()

    def _send_all(self, pieces: Sequence[memoryview], waiting: Callable[[], None]) -> None:
        left = list(pieces)
        while left:
            try:
                sent = self._connection.sendmsg(left)
            except BlockingIOError:
                if not self._writable.select(TICK_SECONDS):
                    waiting()
                continue
            except OSError as error:
                raise WireError("the other side is gone") from error
            while left and sent >= left[0].nbytes:
                sent -= left.pop(0).nbytes
            if sent:
                left[0] = left[0][sent:]

    def _read(self, size: int, waiting: Callable[[], None] | None) -> memoryview | None:
        view = memoryview(bytearray(size))
        filled = self._take_ahead(view)
        while filled < size:
            # The rest of a large payload goes straight to its place.
            is_small = size - filled < _AHEAD_BYTES
            try:
                count = self._connection.recv_into(self._buffer if is_small else view[filled:])
            except BlockingIOError:
                if not self._readable.select(TICK_SECONDS if waiting else None) and waiting:
                    waiting()
                continue
            except OSError:
                return None
            if not count:
                return None
            if is_small:
                self._ahead = self._buffer[:count]
                count = self._take_ahead(view[filled:])
            filled += count
        return view

    def _take_ahead(self, view: memoryview) -> int:
        """Fills a view with what was read beyond the last frame; returns how much that was."""
        count = min(view.nbytes, self._ahead.nbytes)
        view[:count] = self._ahead[:count]
        self._ahead = self._ahead[count:]
        return count
