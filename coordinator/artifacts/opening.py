"""The one function that opens the files of artifacts."""

import errno
import io
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from coordinator.artifacts.paths import safe_parts
from stagewire.errors import PathForbiddenError

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, so that a fifo put there after the check cannot hold the caller.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_inside(root: Path, path: str, *, links_within: Sequence[Path] = ()) -> io.FileIO:
    """Opens a regular file below `root` for reading; no link on the way is followed.

    A hard link is refused too, since whoever holds the other name could change the bytes after they
    were checked, unless all its names lie within `links_within`.

    Raises:
        PathForbiddenError: the path leaves `root`, meets a link, or is not a regular file.
        FileNotFoundError: there is no such file.
    """
    parts = safe_parts(path)
    # The root itself may be reached over a link: it comes from the operator, not from an artifact.
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = _open_folder(folder, part, path)
            os.close(folder)
            folder = inner
        descriptor = _open_file(folder, parts[-1], path)
    finally:
        os.close(folder)
    try:
        _require_own_links(descriptor, path, links_within)
        return io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _open_folder(parent: int, name: str, path: str) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise _forbidden(path, f"goes through {name!r}, which is a link or no folder") from None
        raise


def _open_file(folder: int, name: str, path: str) -> int:
    # Looked at before it is opened: opening a device can already have an effect.
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise _forbidden(path, "is a link, a folder or a special file, not a regular file")
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise _forbidden(path, "became a link or a special file meanwhile") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _forbidden(path, "became a special file meanwhile")
    return descriptor


def _require_own_links(descriptor: int, path: str, links_within: Sequence[Path]) -> None:
    before = os.fstat(descriptor)
    if before.st_nlink <= 1:
        return
    found = itertools.chain.from_iterable(_names_of(before, folder) for folder in links_within)
    names = sum(1 for _ in itertools.islice(found, before.st_nlink))
    # Others add and remove names during the count; either reading may be the true one.
    links = min(before.st_nlink, os.fstat(descriptor).st_nlink)
    if links > max(names, 1):
        where = "outside the cache" if links_within else "elsewhere"
        raise _forbidden(path, f"is a hard link with another name {where}; put a copy in its place")


def _names_of(file: os.stat_result, folder: Path) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _names_of(file, Path(entry.path))
        elif entry.inode() == file.st_ino:
            yield entry.path


def _forbidden(path: str, problem: str) -> PathForbiddenError:
    return PathForbiddenError(f"{path!r} {problem}", path=path)
