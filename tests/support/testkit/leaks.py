"""The leak probe: what this process and its descendants hold, before and after a test."""

import ctypes
import gc
import os
import re
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from testkit.waiting import until_sync

_PR_SET_CHILD_SUBREAPER: Final = 36
_SHARED_MEMORY: Final = Path("/dev/shm")
_OWN_SHARED_NAMES: Final = re.compile(r"stagewire|psm_|sem\.|torch_")
"""Other programs of the machine keep names there too."""
_LOOP_THREADS: Final = "asyncio_"
"""Threads of the test's own loop end with it, outside of the probe."""


@dataclass(frozen=True)
class Holdings:
    """What is held at one moment, each as a count by name."""

    processes: Counter[str]
    descriptors: Counter[str]
    threads: Counter[str]
    listeners: Counter[str]
    files: Counter[str]
    shared_memory: Counter[str]

    def beyond(self, before: "Holdings") -> dict[str, dict[str, int]]:
        """Returns what is held now and was not before."""
        more = {name: getattr(self, name) - getattr(before, name) for name in vars(self)}
        return {name: dict(counts) for name, counts in more.items() if counts}


class LeakProbe:
    """Sees to it that a test leaves nothing behind: no process, descriptor, thread or name."""

    def __init__(self) -> None:
        # What a worker started and left becomes a child of this process, hence cannot hide.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._known = {child.pid for child in psutil.Process().children(recursive=True)}
        self._before = self._look()

    def check(self, seconds: float = 15.0) -> None:
        """Waits until everything is as it was.

        Raises:
            AssertionError: something stayed.
        """
        # What only a failure's traceback kept would go at some later moment.
        gc.collect()
        try:
            until_sync(lambda: not self._look().beyond(self._before), seconds)
        except AssertionError:
            left = self._look().beyond(self._before)
            self._end_processes()
            assert not left, f"left behind: {left}"

    def _look(self) -> Holdings:
        return Holdings(
            Counter(map(_name_of, self._processes())),
            Counter(map(_kind_of, os.listdir("/proc/self/fd"))),
            Counter(
                re.sub(r"\d+", "N", thread.name)
                for thread in threading.enumerate()
                if not thread.name.startswith(_LOOP_THREADS)
            ),
            Counter(_listeners()),
            Counter(os.listdir(tempfile.gettempdir())),
            Counter(name for name in os.listdir(_SHARED_MEMORY) if _OWN_SHARED_NAMES.search(name)),
        )

    def _processes(self) -> list[psutil.Process]:
        """Returns the living descendants that began during the test; takes the dead away."""
        living = []
        for child in psutil.Process().children(recursive=True):
            if child.pid in self._known:
                continue
            try:
                if child.status() != psutil.STATUS_ZOMBIE:
                    living.append(child)
                elif child.ppid() == os.getpid():
                    os.waitpid(child.pid, os.WNOHANG)
            except (psutil.NoSuchProcess, ChildProcessError):
                continue
        return living

    def _end_processes(self) -> None:
        for process in self._processes():
            process.kill()


def _name_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "gone"


def _kind_of(descriptor: str) -> str:
    try:
        target = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        # The one that the listing itself used.
        return "listing"
    return re.sub(r":\[\d+\]", "", target)


def _listeners() -> list[str]:
    connections: list[Any] = psutil.Process().net_connections("inet")
    return [str(item.laddr) for item in connections if item.status == psutil.CONN_LISTEN]


def living_members(group: int) -> list[int]:
    """Returns the processes of a process group that live."""
    members = []
    for process in psutil.process_iter():
        try:
            is_living = process.status() != psutil.STATUS_ZOMBIE
            if is_living and os.getpgid(process.pid) == group:
                members.append(process.pid)
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    return members
