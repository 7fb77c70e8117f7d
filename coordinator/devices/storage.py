"""Storage of the host: the room that is left where files would be written."""

import os
from dataclasses import dataclass
from pathlib import Path

from coordinator.devices.probing import PROBE_SECONDS, Unavailable, run_probe


@dataclass(frozen=True, slots=True)
class Storage:
    """Room on one file system."""

    path: Path
    """Existing folder that was looked at."""
    total_bytes: int
    free_bytes: int
    """What this user may still write."""


def probe_storage(folder: Path, limit_seconds: float = PROBE_SECONDS) -> Storage | Unavailable:
    """Reads the room left for a folder, which need not exist yet."""
    return run_probe(f"room at {folder}", lambda: _read_storage(folder), limit_seconds)


def probe_shared_memory(
    root: Path = Path("/"), limit_seconds: float = PROBE_SECONDS
) -> Storage | Unavailable:
    """Reads the room left for shared memory below a root folder."""

    def read() -> Storage:
        folder = root / "dev/shm"
        os.stat(folder)
        return _read_storage(folder)

    return run_probe("shared memory", read, limit_seconds)


def _read_storage(folder: Path) -> Storage:
    # What does not exist yet will be made in the nearest folder above that does.
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    room = os.statvfs(existing)
    return Storage(existing, room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize)
