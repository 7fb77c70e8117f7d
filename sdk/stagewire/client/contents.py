"""What stands in a file, or was given as bytes: looked at before it is read, and read once."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

from stagewire.client.kinds import HEAD_BYTES
from stagewire.errors import MediaInvalidError

Source: TypeAlias = "str | os.PathLike[str] | bytes"

_BLOCK_BYTES: Final = 1 << 20
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    # A pipe that took the place of the file would be waited for.
    | getattr(os, "O_NONBLOCK", 0)
)
_KINDS: Final = (
    (stat.S_ISDIR, "a folder; name a file in it"),
    (stat.S_ISFIFO, "a pipe; save what comes out of it and name that file, or pass its bytes"),
    (stat.S_ISSOCK, "a socket; name a file"),
    (stat.S_ISCHR, "a device; name a file"),
    (stat.S_ISBLK, "a device; name a file"),
)


@dataclass(frozen=True, slots=True)
class Content:
    """An open file, or bytes that were given."""

    name: str
    """What messages call it."""
    head: bytes
    """Its beginning."""
    limit_bytes: int
    file: "BinaryIO | None"
    given: bytes = b""

    def read(self) -> bytes:
        """Returns all of it.

        Raises:
            MediaInvalidError: it changed under the reading, or cannot be read.
        """
        if self.file is None:
            return self.given
        try:
            return self._read_file(self.file)
        except OSError as error:
            raise _unreadable(self.name, error) from None

    def _read_file(self, file: BinaryIO) -> bytes:
        size = os.fstat(file.fileno()).st_size
        if size > self.limit_bytes:
            raise _too_long(self.name, self.limit_bytes)
        raw = file.read(size)
        if len(raw) < size:
            raise MediaInvalidError(
                f"{self.name} became shorter while it was read; wait until it is written"
            )
        more = file.read(1)
        if more and size:
            raise MediaInvalidError(f"{self.name} is still growing; wait until it is written")
        # Files that the system makes up have no size before they are read.
        blocks = [more]
        while blocks[-1]:
            blocks.append(file.read(_BLOCK_BYTES))
            if sum(map(len, blocks)) > self.limit_bytes:
                raise _too_long(self.name, self.limit_bytes)
        return raw or b"".join(blocks)


@contextmanager
def opened(source: Source, limit_bytes: int) -> Iterator[Content]:
    """Opens a file, or takes bytes as one.

    Raises:
        MediaInvalidError: there is no such file, it is too long, or is none that can be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        if memoryview(source).nbytes > limit_bytes:
            raise _too_long("the content", limit_bytes)
        raw = bytes(source)
        yield Content("the content", raw[:HEAD_BYTES], limit_bytes, None, raw)
        return
    path = _path_of(source)
    name = os.path.basename(path) or path
    try:
        _check_kind(os.stat(path), path)
        file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with file:
        try:
            found = os.fstat(file.fileno())
            _check_kind(found, path)
            if found.st_size > limit_bytes:
                raise _too_long(name, limit_bytes)
            head = file.read(HEAD_BYTES)
            file.seek(0)
        except OSError as error:
            raise _unreadable(path, error) from None
        yield Content(name, head, limit_bytes, file)


def _path_of(source: object) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fsdecode(source)
    what = f"a {type(source).__name__}"
    if hasattr(source, "__array_interface__"):
        raise MediaInvalidError(f"{what} is no file; pass an array to the pipeline as it is")
    if hasattr(source, "read"):
        raise MediaInvalidError(f"{what} is an open file; pass its path, or what it reads")
    raise MediaInvalidError(f"{what} names no file; pass a path, or the content as bytes")


def _check_kind(found: os.stat_result, path: str) -> None:
    for is_kind, kind in _KINDS:
        if is_kind(found.st_mode):
            raise MediaInvalidError(f"{path} is {kind}")


def _unreadable(path: str, error: "OSError | ValueError") -> MediaInvalidError:
    if isinstance(error, ValueError):
        return MediaInvalidError(f"{path!r} cannot be the name of a file; name one that exists")
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
        return MediaInvalidError(
            f"{path} cannot be read: {error.strerror or error}; name a file that you may read"
        )
    if "://" in path:
        return MediaInvalidError(f"{path} is an address; download it, and name the file")
    if path.startswith("~"):
        return MediaInvalidError(f"{path} does not exist: write the folder instead of `~`")
    return MediaInvalidError(f"{path} does not exist; name a file that does")


def _too_long(name: str, limit_bytes: int) -> MediaInvalidError:
    return MediaInvalidError(f"{name} is over the limit of {limit_bytes} bytes; cut it")
