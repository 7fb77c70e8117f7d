"""Messages that leave a process on Exchange, gathered from any thread and joined into envelopes."""

import asyncio
import threading
from collections import deque

from stagewire.envelope import Waiting, take_envelope
from stagewire.v1 import gateway_pb2 as pb


class Outbox:
    """A queue of messages that any thread fills and one task of the loop empties.

    Its size is bounded by the credit of the executions that fill it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._queue: Waiting = deque()
        self._filled = asyncio.Event()
        self._is_woken = False

    def put(self, message: pb.ExchangeMessage, payload: memoryview | None = None) -> None:
        """Adds one message; from any thread."""
        with self._lock:
            self._queue.append((message, payload))
            if self._is_woken:
                return
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._filled.set)

    async def next_envelope(self) -> bytes:
        """Waits for messages and returns as many as fit into one envelope, joined."""
        await self._filled.wait()
        with self._lock:
            envelope = take_envelope(self._queue, pb.ExchangeRequest())
            if not self._queue:
                self._filled.clear()
                self._is_woken = False
        return envelope
