"""What tasks of one loop wait on until something holds."""

import asyncio
from collections.abc import Callable


class Changes:
    """A condition without a lock: between two waits a task has the loop to itself."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Waits until something is true; looks again whenever it is told of a change."""
        while not is_true():
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(change)
            try:
                await change
            finally:
                self._waiting.discard(change)

    def tell(self) -> None:
        """Wakes whoever waits; on the loop."""
        for change in self._waiting:
            if not change.done():
                change.set_result(None)
