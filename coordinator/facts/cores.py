"""Cores: the hardware threads of a machine, by the operating system's numbers."""

import math
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostCores:
    """The hardware threads that this process, and with it every worker, may run on."""

    groups: tuple[tuple[int, ...], ...]
    """Those of one physical core together; each alone where the kernel does not say."""
    quota_cores: float | None = None
    """Cores' worth of time that control groups allow; None without a quota."""

    @property
    def usable(self) -> frozenset[int]:
        """Every one of them."""
        return frozenset(core for group in self.groups for core in group)

    @property
    def at_once(self) -> int:
        """How many can run at the same time; at least one."""
        if self.quota_cores is None:
            return len(self.usable)
        return max(1, min(len(self.usable), math.floor(self.quota_cores)))


def spell_cores(cores: Collection[int]) -> str:
    """Returns numbers as the kernel lists them, such as `0-2,5`."""
    ranges: list[tuple[int, int]] = []
    for core in sorted(cores):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], core)
        else:
            ranges.append((core, core))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_cores(text: str) -> tuple[int, ...]:
    """Returns the numbers of a list such as `0-2,5`, in order.

    Raises:
        ValueError: it has another form.
    """
    cores: set[int] = set()
    for item in text.strip().split(","):
        first, dash, last = item.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{item[:40]!r} is not a range of cores")
        cores.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cores))
