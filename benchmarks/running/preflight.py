"""The look at the machine before a run."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from benchmarks.judging.quiet import Preflight, busiest, core_shares, quieter

WINDOWS: Final = 2
WINDOW_SECONDS: Final = 0.75
_PAUSE_SECONDS: Final = 5.0
_STAT: Final = Path("/proc/stat")


def look() -> Preflight:
    """Watches the cores that a run may use, over short windows."""
    cores = sorted(os.sched_getaffinity(0))
    before = _process_times()
    start = time.perf_counter()
    windows = []
    for _ in range(WINDOWS):
        first = _STAT.read_text(encoding="ascii")
        time.sleep(WINDOW_SECONDS)
        windows.append(core_shares(first, _STAT.read_text(encoding="ascii"), cores))
    seconds = time.perf_counter() - start
    found = busiest(before, _process_times(), seconds)
    return Preflight(quieter(windows), found, os.getloadavg()[0])


def wait_until_quiet(seconds: float, say: Callable[[str], None]) -> Preflight:
    """Returns the look at the machine that found it quiet, or the last one."""
    until = time.monotonic() + seconds
    while not (found := look()).is_quiet and time.monotonic() < until:
        left = until - time.monotonic()
        say(f"not quiet, waiting up to {left:.0f} s more: {found.reason}")
        time.sleep(min(_PAUSE_SECONDS, max(left, 0.0)))
    return found


def _process_times() -> dict[int, tuple[str, float]]:
    """Returns name and CPU seconds of every other process."""
    times = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        spent = process.info["cpu_times"]
        if process.pid != os.getpid() and spent is not None:
            times[process.pid] = (process.info["name"] or "?", spent.user + spent.system)
    return times
