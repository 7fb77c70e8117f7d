"""Time limits that a sleeping machine does not use up.

A machine that sleeps, a virtual machine that is paused, a debugger: this process and its workers
stand still together while the monotonic clock may go on. Whoever looks late has seen nothing, so
that no worker may be judged by the time that passed meanwhile.
"""

import asyncio
import time
from typing import Any, Final

_TICK_SECONDS: Final = 0.5


class AwakeClock:
    """The time in which somebody looked. Pure; it reads no clock of its own."""

    def __init__(self, longest_step_seconds: float) -> None:
        """Starts at zero; a step between two looks counts up to `longest_step_seconds`."""
        self._longest_step = longest_step_seconds
        self._seen: float | None = None
        self._awake = 0.0

    def read(self, now: float) -> float:
        """Returns the time awake, in seconds, at a time of the monotonic clock."""
        if self._seen is not None:
            self._awake += min(max(now - self._seen, 0.0), self._longest_step)
        self._seen = now
        return self._awake


async def sleep_awake(seconds: float) -> None:
    """Waits for a time in which this process was awake."""
    clock = AwakeClock(2 * _TICK_SECONDS)
    clock.read(time.monotonic())
    left = seconds
    while left > 0:
        await asyncio.sleep(min(left, _TICK_SECONDS))
        left = seconds - clock.read(time.monotonic())


async def first_of(*futures: "asyncio.Future[Any]", limit_seconds: float | None = None) -> None:
    """Waits until one of the futures is done, whatever their results are (hence Any).

    With a limit no longer than that, in time awake.
    """
    limits = [] if limit_seconds is None else [asyncio.ensure_future(sleep_awake(limit_seconds))]
    try:
        await asyncio.wait([*futures, *limits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for limit in limits:
            limit.cancel()
