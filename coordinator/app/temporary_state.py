"""State folders for the life of one process, and what killed processes left of theirs.

The folder itself is locked as long as its process lives, from before anything is in it. The kernel
lets go of that lock however the process ends; a folder that can be locked belongs to nobody.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator.app.state_folder import LOGS_NAME
from stagewire.endpoint import FILE_NAME, LOCK_NAME, is_held

_RANDOM: Final = re.compile(r"[a-z0-9_]{8}")
"""What `tempfile` puts behind a prefix."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT: Final = frozenset((FILE_NAME, LOCK_NAME, LOGS_NAME))


@contextlib.contextmanager
def temporary_state(prefix: str) -> Iterator[Path]:
    """Makes a folder among the temporary files that goes with the block; sweeps first."""
    sweep_left_folders(Path(tempfile.gettempdir()), prefix)
    path, descriptor = _make(prefix)
    try:
        yield path
    finally:
        try:
            # Another part of this process, or a person, may have taken it away.
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(path)
        finally:
            os.close(descriptor)


def sweep_left_folders(parent: Path, prefix: str) -> tuple[Path, ...]:
    """Removes the folders of that prefix whose process was killed; returns those.

    Whatever is not certainly such a folder stays: one of a living process or of another user, one
    that is open to others, a link, and one with anything in it that no coordinator makes.
    """
    removed = []
    for path in sorted(parent.glob(f"{prefix}*")):
        if _RANDOM.fullmatch(path.name.removeprefix(prefix)) is None:
            continue
        # What cannot be looked at or removed is no reason to refuse a start.
        with contextlib.suppress(OSError), _locked(path) as is_left:
            if is_left and all(_is_ours(item.name) for item in path.iterdir()):
                shutil.rmtree(path)
                removed.append(path)
    return tuple(removed)


def _is_ours(name: str) -> bool:
    return name in _CONTENT or name.startswith(f".{FILE_NAME}.")


def _make(prefix: str) -> tuple[Path, int]:
    """Makes a folder and locks it; returns it with the descriptor that holds the lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        # Until it is locked a sweep may take it away; then it is made anew.
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, _FOLDER)
            if _lock(descriptor) and _is_at(path, descriptor):
                return path, descriptor
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without such locks: then no sweep gets one either.
        return True
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Locks a folder around the block; gives whether it is one that a killed process left."""
    descriptor = os.open(path, _FOLDER)
    try:
        found = os.fstat(descriptor)
        is_ours = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == stat.S_IRWXU
        if is_ours:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield is_ours and not is_held(path)
    finally:
        os.close(descriptor)
