"""Messages of one call on their way out."""

from collections import deque
from typing import Final

from stagewire.limits import MESSAGE_BYTES

_WAITING_BYTES: Final = MESSAGE_BYTES


class Departures:
    """A queue that is bounded by its bytes, so that a large item is copied piece by piece.

    Credit overtakes items: a peer that waits for it may have stopped to read items.
    """

    def __init__(self, opening: bytes) -> None:
        self._credits: deque[bytes] = deque()
        self._messages: deque[bytes] = deque([opening])
        self._waiting_bytes = len(opening)
        self.is_closed = False

    @property
    def has_room(self) -> bool:
        """Whether one more message may be added."""
        return self._waiting_bytes < _WAITING_BYTES

    @property
    def is_ready(self) -> bool:
        """Whether a message can be taken, or none will come any more."""
        return self.is_closed or bool(self._credits) or bool(self._messages)

    def put(self, message: bytes) -> None:
        """Adds a message."""
        self._messages.append(message)
        self._waiting_bytes += len(message)

    def put_credit(self, message: bytes) -> None:
        """Adds a credit, which waits for no room."""
        self._credits.append(message)

    def take(self) -> bytes | None:
        """Returns the next message; None at the end."""
        if self.is_closed:
            return None
        if self._credits:
            return self._credits.popleft()
        message = self._messages.popleft()
        self._waiting_bytes -= len(message)
        return message

    def close(self) -> None:
        """Ends the queue; what was not taken is dropped."""
        self.is_closed = True
        self._messages.clear()
        self._credits.clear()
