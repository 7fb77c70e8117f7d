"""Tasks that live no longer than the call or the listener that they belong to."""

import asyncio
import contextlib


async def end_task(task: "asyncio.Task[None]") -> None:
    """Cancels a task and waits until it has ended; a failure of its own is raised."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
