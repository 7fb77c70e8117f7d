"""Messages of one call on their way out: filled by any thread, emptied by gRPC."""

import threading
from collections import deque
from typing import Final

from stagewire.limits import MESSAGE_BYTES

_WAITING_BYTES: Final = MESSAGE_BYTES


class Outgoing:
    """An iterator of messages that ends when it is closed.

    Items wait here while `_WAITING_BYTES` are on their way, so that a large one is copied piece by
    piece; credit overtakes them, because a peer that waits for it may have stopped to read items.
    """

    def __init__(self, opening: bytes) -> None:
        self._changed = threading.Condition()
        self._credits: deque[bytes] = deque()
        self._messages: deque[bytes] = deque([opening])
        self._waiting_bytes = len(opening)
        self._is_closed = False

    def put(self, message: bytes) -> bool:
        """Adds a message, waiting for room; False when the call is over and it was not added."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._waiting_bytes < _WAITING_BYTES)
            if self._is_closed:
                return False
            self._messages.append(message)
            self._waiting_bytes += len(message)
            self._changed.notify_all()
        return True

    def put_credit(self, message: bytes) -> None:
        """Adds a credit, which waits for nothing."""
        with self._changed:
            self._credits.append(message)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the iterator; what was not taken is dropped."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __iter__(self) -> "Outgoing":
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._messages or self._credits)
            if self._is_closed:
                raise StopIteration
            if self._credits:
                return self._credits.popleft()
            message = self._messages.popleft()
            self._waiting_bytes -= len(message)
            self._changed.notify_all()
            return message
