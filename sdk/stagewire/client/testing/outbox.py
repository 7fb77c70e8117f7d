"""Messages of one fake Infer that wait for gRPC."""

import threading
from collections import deque
from collections.abc import Iterator

from stagewire import frame
from stagewire.errors import StageError
from stagewire.v1 import coordinator_pb2 as pb


class Outbox:
    """Messages that wait for gRPC; iterated in the thread of the call."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._failure: StageError | None = None
        self._is_ended = False

    def put(self, message: pb.InferResponse, payload: "memoryview | bytes" = b"") -> None:
        """Adds a message."""
        with self._changed:
            self._messages.append(frame.join(message.SerializeToString(), [payload]))
            self._changed.notify_all()

    def end(self, failure: StageError | None) -> None:
        """Ends the call once everything before was taken; the first word holds."""
        with self._changed:
            if not self._is_ended:
                self._is_ended, self._failure = True, failure
                self._changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over the messages as they come, in the thread of the call.

        Raises:
            StageError: what the call ends with.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._is_ended)
                if not self._messages:
                    break
                message = self._messages.popleft()
            yield message
        if self._failure is not None:
            raise self._failure
