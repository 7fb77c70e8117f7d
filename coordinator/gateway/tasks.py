"""What calls wait for and no longer than for a time, or than they live: a first message, tasks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from stagewire.errors import FieldInvalidError


async def first_message(messages: AsyncIterator[bytes], name: str, limit_seconds: float) -> bytes:
    """Waits for the first message of a call; nothing when the caller ends its stream without one.

    Raises:
        FieldInvalidError: none came in time; a silent caller must not hold a call for ever.
    """
    try:
        return await asyncio.wait_for(anext(aiter(messages), b""), limit_seconds)
    except TimeoutError:
        raise FieldInvalidError(f"no {name} came within {limit_seconds:g} s") from None


async def end_task(task: "asyncio.Task[None]") -> None:
    """Cancels a task and waits until it has ended; a failure of its own is raised."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
