"""The folder of the cache: whose it is, who else may write into it, whether programs may run there.

What lies in it is executed, so that nobody else may change it.
"""

import os
import shlex
import stat
from pathlib import Path
from typing import Final

from coordinator.artifacts.trouble import ANOTHER_CACHE
from stagewire.errors import EnvironmentBrokenError, PathForbiddenError

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_OURS: Final = frozenset({"artifacts", "environments", "files", "locks", "staging", "uv", "wheels"})
"""Names of which one lies in every cache that was used."""
_ROOT_USER: Final = 0


def check_cache(root: Path) -> None:
    """Looks at the cache, which may not exist yet; makes sure that only its owner writes into it.

    Raises:
        PathForbiddenError: it is no folder, another user's, or open to others and perhaps not ours;
            or its name cannot be told to workers.
    """
    if not _is_text(root):
        raise PathForbiddenError(
            f"the name of the cache {os.fsencode(root)!r} is not UTF-8; {ANOTHER_CACHE}"
        )
    try:
        found = root.stat()
    except OSError:
        # What is wrong with the way to it is said once it is needed.
        return
    if not stat.S_ISDIR(found.st_mode):
        raise PathForbiddenError(
            f"the cache {root} is no folder; move it away, or {ANOTHER_CACHE}", path=str(root)
        )
    if found.st_uid not in {os.geteuid(), _ROOT_USER}:
        raise PathForbiddenError(
            f"the cache {root} belongs to another user, who could change what is run from it;"
            f" {ANOTHER_CACHE}",
            path=str(root),
        )
    if found.st_mode & _WRITABLE_BY_OTHERS:
        _close(root, found)


def make_cache(root: Path) -> None:
    """Makes the cache, which nobody else may enter, unless it is there.

    Raises:
        PathForbiddenError: as `check_cache`.
        OSError: it cannot be made.
    """
    check_cache(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    root.mkdir(mode=0o700, exist_ok=True)


def require_programs(root: Path) -> None:
    """Makes sure that libraries can be loaded from where the cache lies, or will lie.

    Raises:
        EnvironmentBrokenError: its file system is mounted so that they cannot.
    """
    place = root
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        raise EnvironmentBrokenError(
            f"the cache {root} lies on a file system that is mounted noexec, from which no library"
            f" can be loaded; {ANOTHER_CACHE}, or mount it without noexec"
        )


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _close(root: Path, found: os.stat_result) -> None:
    is_read_only = os.statvfs(root).f_flag & os.ST_RDONLY
    if is_read_only or found.st_uid != os.geteuid():
        # Nobody can write through a mount that is read-only; only its owner can close the folder.
        is_ours = bool(is_read_only)
    else:
        names = set(os.listdir(root))
        is_ours = not found.st_mode & stat.S_ISVTX and (not names or bool(names & _OURS))
    if not is_ours:
        raise PathForbiddenError(
            f"other users may write into the cache {root} and change what is run from it; close it"
            f" with `chmod go-w {shlex.quote(str(root))}`, or {ANOTHER_CACHE}",
            path=str(root),
        )
    if not is_read_only:
        root.chmod(stat.S_IMODE(found.st_mode) & ~_WRITABLE_BY_OTHERS)
