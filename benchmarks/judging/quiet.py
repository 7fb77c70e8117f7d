"""Whether a machine is quiet, from two readings of /proc."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BUSY_CORES: Final = 0.2
"""Share of a core that others may use; more, and figures tell of the neighbours."""
STOLEN_CORES: Final = 0.05
"""Share of a core that the machine below may take away."""
_IDLE, _IOWAIT, _STEAL, _GUEST = 3, 4, 7, 8


@dataclass(frozen=True, slots=True)
class Core:
    """Shares of one core over a window, from 0 to 1."""

    busy: float
    stolen: float


@dataclass(frozen=True, slots=True)
class Process:
    """One process that used a core."""

    pid: int
    name: str
    cores: float


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a look at the machine found."""

    cores: Mapping[int, Core]
    """The quieter of the windows, for each core that will be used."""
    busiest: tuple[Process, ...]
    load: float
    """Load average of the last minute, for the record alone: it remembers what has ended."""

    @property
    def reason(self) -> str:
        """Why the machine is not quiet; empty when it is."""
        worst = max(self.cores, key=lambda core: self.cores[core].busy)
        stolen = max(core.stolen for core in self.cores.values())
        if stolen > STOLEN_CORES:
            return f"the machine below takes away {stolen:.0%} of a core"
        if self.cores[worst].busy <= BUSY_CORES:
            return ""
        named = ", ".join(f"{item.name} ({item.pid}) {item.cores:.2f}" for item in self.busiest)
        who = f"busiest: {named}" if named else "no process here; look outside this container"
        return f"core {worst} is busy for {self.cores[worst].busy:.0%}; {who}"

    @property
    def is_quiet(self) -> bool:
        """Whether figures will tell of the product."""
        return not self.reason


def core_shares(before: str, after: str, cores: Sequence[int]) -> dict[int, Core]:
    """Returns what some cores did between two readings of /proc/stat."""
    first, last = _ticks(before), _ticks(after)
    shares = {}
    for core in cores:
        spent = [now - then for then, now in zip(first[core], last[core], strict=True)]
        # Time of guests is counted in user time already.
        whole = max(sum(spent[:_GUEST]), 1)
        busy = whole - spent[_IDLE] - spent[_IOWAIT] - spent[_STEAL]
        shares[core] = Core(busy / whole, spent[_STEAL] / whole)
    return shares


def quieter(windows: Sequence[Mapping[int, Core]]) -> dict[int, Core]:
    """Returns the quieter window of each core: what lasts shows in all of them, a blip in one."""
    return {
        core: Core(
            min(window[core].busy for window in windows),
            min(window[core].stolen for window in windows),
        )
        for core in windows[0]
    }


def busiest(
    before: Mapping[int, tuple[str, float]],
    after: Mapping[int, tuple[str, float]],
    seconds: float,
    count: int = 3,
) -> tuple[Process, ...]:
    """Returns who used most between two readings of names and CPU seconds by process id."""
    # Who was not there before has used all its time since.
    used = [
        Process(pid, name, (now - before.get(pid, (name, 0.0))[1]) / seconds)
        for pid, (name, now) in after.items()
        if now > before.get(pid, (name, 0.0))[1]
    ]
    return tuple(sorted(used, key=lambda item: -item.cores)[:count])


def _ticks(text: str) -> dict[int, list[int]]:
    rows = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {
        int(name.removeprefix("cpu")): list(map(int, numbers))
        for name, *numbers in rows
        if name != "cpu"
    }
