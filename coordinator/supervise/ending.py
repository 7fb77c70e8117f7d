"""The end of a process: bounded for whoever waits, and never taken for done before it is."""

import asyncio
from collections.abc import Callable

from coordinator.supervise.awake import first_of
from coordinator.supervise.life import Process


async def end_process(
    process: Process,
    ended: "asyncio.Future[object]",
    *,
    limit_seconds: float,
    stopping: asyncio.Event,
    note_stuck: Callable[[], None],
) -> bool:
    """Kills a process and waits until it is gone; returns whether it is.

    One that does not end within the limit is noted and waited for on, but not by a stop.
    """
    closed = asyncio.ensure_future(process.aclose())
    try:
        await first_of(closed, limit_seconds=limit_seconds)
        if not closed.done():
            note_stuck()
            stop = asyncio.ensure_future(stopping.wait())
            await first_of(closed, stop)
            stop.cancel()
        if not closed.done():
            return False
        await closed
        await ended
    finally:
        closed.cancel()
        ended.cancel()
    return True
