"""Waiting for what is under way: until a condition holds, with a deadline, never for a time."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Final

PATIENCE_SECONDS: Final = 30.0
"""Generous: the machine may be busy with other things."""
_LOOK_SECONDS: Final = 0.005


def describe(condition: Callable[[], Any]) -> str:
    code = condition.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


async def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Waits until a condition holds and returns what it gave; looks at it again and again."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never true: {describe(condition)}"
        await asyncio.sleep(_LOOK_SECONDS)
    return found


def until_sync(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Does the same in a test without a loop."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never true: {describe(condition)}"
        pause.wait(_LOOK_SECONDS)
    return found
