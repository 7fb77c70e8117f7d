"""The machine that a benchmark runs on, and whether it is quiet enough."""

import datetime
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

QUIET_LOAD: Final = 0.5
"""Load average above which figures say more about the neighbours than about the product."""
_POLL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What figures depend on beside the program."""

    processor: str
    cores: int
    memory_gib: float
    system: str
    date: str
    load: float
    """Average of the last minute."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing else ran in the last minute."""
        return self.load <= QUIET_LOAD


def look() -> Machine:
    """Returns the machine as it is now."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        load=os.getloadavg()[0],
    )


def wait_until_quiet(seconds: float) -> Machine:
    """Returns the machine as soon as it is quiet, or as it is after so many seconds."""
    until = time.monotonic() + seconds
    while not (machine := look()).is_quiet and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    return machine


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
