"""What the machine's refusals mean for a person: which folder, disk or limit, and what to do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from stagewire.errors import DiskFullError, PathForbiddenError, ProcessLimitError, StageError

FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LIMITS: Final = {
    errno.EMFILE: "this process may not open more files; raise `ulimit -n`",
    errno.ENFILE: "the machine may not open more files; raise `sysctl fs.file-max`",
    errno.EAGAIN: "this user may not start more processes; raise `ulimit -u`",
}
_GONE: Final = frozenset({errno.ENOENT, errno.ESTALE})
_FOLDER_ERRNOS: Final = _GONE | {
    errno.EACCES,
    errno.EEXIST,
    errno.EIO,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.EPERM,
    errno.EROFS,
}
ANOTHER_CACHE: Final = "name another folder with STAGEWIRE_CACHE"


def limit_reached(error: OSError) -> ProcessLimitError | None:
    """Returns the refusal that says which limit of the operating system to raise, if it is one."""
    text = _LIMITS.get(error.errno or 0)
    return None if text is None else ProcessLimitError(text)


def said(error: OSError) -> str:
    """Returns what the system said, or which limit to raise where that is what it meant."""
    return _LIMITS.get(error.errno or 0) or error.strerror or str(error)


def failure_of_machine(error: BaseException) -> StageError | None:
    """Returns what to tell of a failure that comes from a full disk or a limit, wherever it was."""
    while not isinstance(error, OSError):
        if isinstance(error, StageError) or error.__cause__ is None:
            return None
        error = error.__cause__
    if error.errno in FULL_ERRNOS:
        where = f" at {error.filename}" if error.filename else ""
        return DiskFullError(f"the disk is full{where}; free space on it")
    return limit_reached(error)


@contextmanager
def naming_trouble(root: Path) -> Iterator[None]:
    """Turns the system's word that the cache cannot be used into a refusal that says what to do.

    Whatever else fails, such as an output that nobody reads any more, stays as it is.
    """
    try:
        yield
    except OSError as error:
        if (limit := limit_reached(error)) is not None:
            raise limit from error
        if error.errno in FULL_ERRNOS:
            raise DiskFullError(
                f"the disk of the cache {root} is full; free space on it, or {ANOTHER_CACHE}"
            ) from error
        if error.errno not in _FOLDER_ERRNOS:
            raise
        raise _unusable(root, error) from error


def _unusable(root: Path, error: OSError) -> PathForbiddenError:
    where = "" if error.filename in {None, str(root)} else f"{os.fspath(error.filename)!r}: "
    if error.errno in _GONE and root.is_dir():
        remedy = "a part of it was removed meanwhile; start again"
    else:
        remedy = ANOTHER_CACHE
    return PathForbiddenError(f"the cache {root} cannot be used: {where}{error.strerror}; {remedy}")
