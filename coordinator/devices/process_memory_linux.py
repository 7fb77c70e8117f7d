"""Reading what a process occupies from /proc; never that of another one that got its id.

A process is held by its folder in /proc, opened once: whatever is read through it is of that
process or fails, also when it ended meanwhile and its id went to another one.
"""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator.devices.process_memory import (
    ProcessIdentity,
    ProcessMemory,
    ReadFailure,
    Unread,
    mappings_of,
    sizes_of,
)

_PROC: Final = Path("/proc")
_START, _PARENT, _SESSION = 19, 1, 3
"""Fields of `stat` behind the name of the program."""
_GONE: Final = (FileNotFoundError, ProcessLookupError)
_FAILURES: Final = (*_GONE, PermissionError)
_PIECE_BYTES: Final = 1 << 30


def identity_of(pid: int) -> ProcessIdentity | None:
    """Returns which process has an id now; None when none has."""
    try:
        with _held(pid) as folder:
            return ProcessIdentity(pid, _fields(folder)[_START])
    except _GONE:
        return None


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether a process runs, or waits for its parent to note its end."""
    return identity_of(identity.pid) == identity


def read_process(identity: ProcessIdentity) -> ProcessMemory | Unread:
    """Returns what a process occupies, or why that cannot be read."""
    try:
        with _held(identity.pid) as folder:
            if _fields(folder)[_START] != identity.start_ticks:
                return Unread(identity, ReadFailure.GONE, "it has ended; its id is another's now")
            sizes = sizes_of(_read(folder, "smaps_rollup"))
            mappings = mappings_of(_read(folder, "smaps"))
            name = _read(folder, "comm").decode(errors="replace").strip()
    except _GONE:
        return Unread(identity, ReadFailure.GONE, "it has ended")
    except PermissionError as error:
        return Unread(identity, ReadFailure.DENIED, f"{error.strerror}".lower())
    if "Pss" not in sizes:
        # One that has ended and waits for its parent has no memory, and says nothing of it.
        return Unread(identity, ReadFailure.GONE, "it has ended")
    return ProcessMemory(
        identity,
        name,
        sizes.get("Pss_Anon", 0),
        sizes.get("Pss_File", 0),
        sizes.get("Pss_Shmem", 0),
        sizes.get("SwapPss", 0),
        mappings,
    )


def descendants_of(identity: ProcessIdentity) -> tuple[ProcessIdentity, ...]:
    """Returns what a process started, and what that started, as long as it lives.

    What has lost its parent is found by its session, if the process leads one.
    """
    parents: dict[int, tuple[int, int, int]] = {}
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            with contextlib.suppress(*_FAILURES), _held(int(entry)) as folder:
                fields = _fields(folder)
                parents[int(entry)] = (fields[_PARENT], fields[_SESSION], fields[_START])
    root = parents.get(identity.pid)
    if root is None or root[2] != identity.start_ticks:
        return ()
    found = {identity.pid}
    while True:
        more = {
            pid
            for pid, (parent, session, _) in parents.items()
            if pid not in found and (parent in found or session == identity.pid)
        }
        if not more:
            break
        found |= more
    return tuple(ProcessIdentity(pid, parents[pid][2]) for pid in sorted(found - {identity.pid}))


def page_cache_bytes(path: Path) -> int | None:
    """Returns how much of a file the memory of the machine holds; None when it cannot be told."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return 0
            with contextlib.closing(_mapped(file.fileno())) as mapped:
                return sum(_resident(mapped))
    except (OSError, ValueError):
        return None


def _mapped(descriptor: int) -> mmap.mmap:
    # Private and writable, for the address of a mapping that may only be read is not given out.
    # Without a claim on memory where Python has the flag: nothing is ever written.
    flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(descriptor, 0, flags, mmap.PROT_READ | mmap.PROT_WRITE)


def _resident(mapped: mmap.mmap) -> Iterator[int]:
    library = ctypes.CDLL(None, use_errno=True)
    view = ctypes.c_char.from_buffer(mapped)
    start = ctypes.addressof(view)
    try:
        for offset in range(0, len(mapped), _PIECE_BYTES):
            size_bytes = min(_PIECE_BYTES, len(mapped) - offset)
            pages = (ctypes.c_ubyte * -(-size_bytes // mmap.PAGESIZE))()
            address = ctypes.c_void_p(start + offset)
            if library.mincore(address, ctypes.c_size_t(size_bytes), pages):
                raise OSError(ctypes.get_errno(), "mincore")
            yield min(size_bytes, mmap.PAGESIZE * sum(page & 1 for page in bytes(pages)))
    finally:
        del view


@contextlib.contextmanager
def _held(pid: int) -> Iterator[int]:
    """Holds the process that has an id now."""
    folder = os.open(_PROC / str(pid), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


def _fields(folder: int) -> list[int]:
    """Returns the numbers of `stat` from the parent's on; the name before may hold anything."""
    _, _, rest = _read(folder, "stat").rpartition(b")")
    return [0, *map(int, rest.split()[1:])]


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read()
