"""What a process occupies, by kind and by mapping: the words for it, and how the kernel's are read.

Pure. The sizes are proportional: a page that several processes map counts for each in part.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_KIB: Final = 1024
_SHARED: Final = (b"/dev/shm/", b"/memfd:", b"/SYSV", b"/dev/zero", b"[anon_shmem")
_DELETED: Final = b" (deleted)"
_HEADER_PARTS: Final = 6
_UNNAMED: Final = "[anonymous]"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process; its id alone may go to another one once it has ended."""

    pid: int
    start_ticks: int
    """When it was created, in clock ticks since the start of the machine."""


class MappingKind(enum.StrEnum):
    """What stands behind the pages of a mapping."""

    ANONYMOUS = "anonymous"
    FILE = "file"
    SHARED = "shared memory"


@dataclass(frozen=True, slots=True)
class MemoryMapping:
    """All mappings of one name in one process."""

    name: str
    """Path of the file, or what the kernel calls it."""
    kind: MappingKind
    pss_bytes: int
    rss_bytes: int
    swap_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """What one process occupied at one moment."""

    identity: ProcessIdentity
    name: str
    """What the kernel calls the program."""
    anonymous_bytes: int
    file_bytes: int
    shared_bytes: int
    swap_bytes: int
    mappings: tuple[MemoryMapping, ...]
    """The largest one first."""

    @property
    def total_bytes(self) -> int:
        """What it occupies of the memory of the machine."""
        return self.anonymous_bytes + self.file_bytes + self.shared_bytes

    def bytes_of(self, path: str) -> int:
        """Returns what of a file it has mapped and resident."""
        return sum(item.pss_bytes for item in self.mappings if item.name == path)


class ReadFailure(enum.StrEnum):
    """Why a process could not be read."""

    GONE = "gone"
    """It has ended; another one may have its id."""
    DENIED = "denied"
    """The operating system does not let this user read it."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A process that could not be read."""

    identity: ProcessIdentity
    failure: ReadFailure
    detail: str


def sizes_of(rollup: bytes) -> Mapping[str, int]:
    """Returns the bytes of every line of a `smaps_rollup`."""
    return dict(_sizes(rollup.splitlines()))


def mappings_of(smaps: bytes) -> tuple[MemoryMapping, ...]:
    """Returns the mappings of a `smaps`, those of one name together, the largest one first."""
    found: dict[bytes, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in smaps.splitlines():
        first, _, _ = line.partition(b" ")
        if b"-" in first and not first.endswith(b":"):
            parts = line.split(maxsplit=_HEADER_PARTS - 1)
            name = parts[-1] if len(parts) == _HEADER_PARTS else b""
            current = found.setdefault(name.removesuffix(_DELETED), {})
            continue
        for word, size_bytes in _sizes([line]):
            current[word] = current.get(word, 0) + size_bytes
    mappings = (
        MemoryMapping(
            name.decode(errors="replace") or _UNNAMED,
            _kind_of(name),
            sizes.get("Pss", 0),
            sizes.get("Rss", 0),
            sizes.get("SwapPss", 0),
        )
        for name, sizes in found.items()
    )
    return tuple(sorted(mappings, key=lambda item: (-item.pss_bytes, item.name)))


def _sizes(lines: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    for line in lines:
        if line.endswith(b" kB"):
            word, _, size = line.partition(b":")
            yield word.decode(), int(size[:-3]) * _KIB


def _kind_of(name: bytes) -> MappingKind:
    if name.startswith(_SHARED):
        return MappingKind.SHARED
    return MappingKind.FILE if name.startswith(b"/") else MappingKind.ANONYMOUS
