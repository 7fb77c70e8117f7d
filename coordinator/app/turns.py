"""Turns at the turnstile: loads wait until the ledger lets them in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from coordinator.facts.ids import Incarnation
from coordinator.ledger.ledger import Ledger
from coordinator.ledger.reservation import Owner


class Turns:
    """Lets loads wait for their turn. The ledger decides; this only waits for its answer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: set[asyncio.Event] = set()

    @contextlib.asynccontextmanager
    async def load(self, owner: Owner, incarnation: Incarnation) -> AsyncIterator[None]:
        """Waits for the turn of a load, and gives it back at the end of the block.

        Raises:
            MemoryBusyError: the process that used the memory before is not proven gone.
        """
        self._ledger.queue_load(owner, incarnation)
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            while owner not in self._ledger.next_loads():
                changed.clear()
                await changed.wait()
            self._ledger.begin_load(owner)
            yield
        finally:
            self._waiting.discard(changed)
            self._ledger.end_load(owner)
            self.tell()

    def tell(self) -> None:
        """Has everybody look again: memory came back."""
        for changed in self._waiting:
            changed.set()
