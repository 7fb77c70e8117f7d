"""Affinity: on which hardware threads the threads of a stage run."""

import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from stagewire.errors import LoadFailedError


class Affinity(Protocol):
    """Where the operating system lets threads of this process run."""

    def set(self, cores: Collection[int]) -> None:
        """Keeps the calling thread, and threads that it starts from now on, to some cores.

        Raises:
            OSError: this process may use none of them.
        """

    def get(self, thread_id: int) -> frozenset[int]:
        """Returns the cores that a thread may run on; 0 is the calling one."""


def make_affinity() -> Affinity | None:
    """Returns the affinity of this operating system; None where it cannot be set."""
    if sys.platform == "linux":
        from stagewire.worker.affinity_linux import LinuxAffinity

        return LinuxAffinity()
    return None


@contextlib.contextmanager
def kept_to(affinity: Affinity | None, cores: Collection[int], stage_id: str) -> Iterator[None]:
    """Runs the block on some cores, and with it every thread that starts inside; none means any.

    Raises:
        LoadFailedError: the worker cannot run there.
    """
    if not cores:
        yield
        return
    if affinity is None:
        raise LoadFailedError(
            f"stage {stage_id!r} has cores {spell_cores(cores)}, which cannot be set on"
            f" {sys.platform}; write cores: shared",
            stage=stage_id,
        )
    before = affinity.get(0)
    try:
        affinity.set(cores)
    except OSError as error:
        raise LoadFailedError(
            f"stage {stage_id!r} cannot run on cores {spell_cores(cores)}: {error.strerror};"
            f" its worker may use {spell_cores(before)}",
            stage=stage_id,
        ) from error
    try:
        yield
    finally:
        affinity.set(before)


def attest_cores(
    affinity: Affinity | None, cores: Collection[int], thread_ids: Iterable[int], stage_id: str
) -> dict[str, str]:
    """Reads back where the threads of a lane may run, as a thread setting.

    Raises:
        LoadFailedError: that is not what was ordered.
    """
    if affinity is None:
        return {}
    found = frozenset[int]().union(*map(affinity.get, thread_ids))
    if cores and found != frozenset(cores):
        raise LoadFailedError(
            f"stage {stage_id!r} runs on cores {spell_cores(found)} instead of"
            f" {spell_cores(cores)}",
            stage=stage_id,
        )
    return {"cores": spell_cores(found)}


def spell_cores(cores: Collection[int]) -> str:
    """Returns numbers as the kernel lists them, such as `0-2,5`."""
    ranges: list[list[int]] = []
    for core in sorted(cores):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
