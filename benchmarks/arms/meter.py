"""Times and CPU times inside an arm."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import psutil

from benchmarks.judging.figures import spread


def processes_cpu_seconds(pids: Iterable[int]) -> float:
    """Returns the CPU time that processes have used so far, without children that ended."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(item.user + item.system for item in times)


class CpuMeter:
    """Measures what processes use while a block runs."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self.seconds = 0.0

    def __enter__(self) -> "CpuMeter":
        self._before = processes_cpu_seconds(self._pids)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.seconds = processes_cpu_seconds(self._pids) - self._before


def timed(call: Callable[[], Any], count: int, warm_up: int) -> list[float]:
    """Returns the microseconds of each of some calls, one after another."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def batch(name: str, times: Sequence[float]) -> Mapping[str, float]:
    """Returns the metrics of one batch of times: median, 10th and 99th percentile."""
    found = spread(times)
    return {name: found.median, f"{name}_p10": found.p10, f"{name}_p99": found.p99}
