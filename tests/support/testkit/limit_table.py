"""The form of the table of limits: what tries each, and how its cost is measured.

`Refused` says what is refused beyond a limit, `Bounded` what never grows beyond it.
"""

import mmap
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewire import limits
from stagewire.errors import StageError

MOST_GROWTH_BYTES = 10 << 20
SHOULD_TAKE_SECONDS = 0.05
MAY_TAKE_SECONDS = 10 * SHOULD_TAKE_SECONDS
"""Ten times as long, because the machine may be shared: this finds what grows with its input."""

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that may have the size of its limit and no more."""

    limit: str
    about: str
    prepare: Callable[[int, Path], Act]
    """Makes something of a size; returns what tries it, which alone is measured."""
    beyond: tuple[int, ...]
    """Sizes that are refused, besides one more than the limit."""
    failure: type[StageError] | tuple[type[StageError], ...]
    says: str = ""
    """What the refusal says, where other reasons raise the same class."""

    def __str__(self) -> str:
        return f"{self.limit}-{self.about}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Returns all sizes that are refused."""
        return (value_of(self.limit) + 1, *self.beyond)

    def is_refusal(self, error: BaseException | None) -> bool:
        """Whether a failure is the refusal for this limit."""
        return isinstance(error, self.failure) and self.says in str(error)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Something that takes any size and keeps no more than its limit."""

    limit: str
    about: str
    prepare: Callable[[int, Path], Callable[[], int | float]]
    """Makes something of a size; returns what tries it and returns how much was kept."""
    sizes: tuple[int, ...]
    slack: int = 0
    """How much more may be kept, such as a mark that something was cut."""

    def __str__(self) -> str:
        return f"{self.limit}-{self.about}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one try took."""

    seconds: float
    growth_bytes: int
    error: StageError | None
    result: Any

    def __str__(self) -> str:
        return f"{self.seconds * 1000:.1f} ms, {self.growth_bytes / 2**20:.1f} MiB"


def value_of(limit: str) -> int:
    """Returns a limit; of a pattern, the longest text that matches it."""
    value = getattr(limits, limit)
    if isinstance(value, str):
        return 1 + int(value.rpartition(",")[2].partition("}")[0])
    return int(value)


def measure(act: Act) -> Cost:
    """Tries something once; the memory is the highest that this process reached meanwhile."""
    # Makes the kernel begin anew with the highest resident size.
    Path("/proc/self/clear_refs").write_text("5")
    before = _highest_bytes()
    error = result = None
    began = time.perf_counter()
    try:
        result = act()
    except StageError as failure:
        error = failure
    seconds = time.perf_counter() - began
    return Cost(seconds, _highest_bytes() - before, error, result)


def sparse(path: Path, size_bytes: int, head: bytes = b"") -> memoryview:
    """Returns a view of so many bytes that take no memory before they are read."""
    sparse_file(path, size_bytes, head)
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), size_bytes, prot=mmap.PROT_READ))


def sparse_file(path: Path, size_bytes: int, head: bytes = b"") -> Path:
    """Makes a file of so many bytes that takes no room on its disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size_bytes)
    path.chmod(0o600)
    return path


def _highest_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
