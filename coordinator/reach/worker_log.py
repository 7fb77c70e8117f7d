"""Logs of workers: whatever a process writes, capped in size and in the length of a line."""

import contextlib
import logging
import os
from pathlib import Path
from typing import Final

from stagewire.limits import LOG_BYTES, LOG_LINE_BYTES

_log = logging.getLogger(__name__)
CUT_MARK: Final = b" [line cut]\n"
_TAIL_BYTES: Final = 64 << 10


class WorkerLog:
    """Writes one log file; when it is full it becomes the older file, which it replaces."""

    def __init__(
        self, path: Path, *, max_bytes: int = LOG_BYTES, max_line_bytes: int = LOG_LINE_BYTES
    ) -> None:
        self.path = path
        self.older_path = path.with_name(f"{path.name}.1")
        self.lost_bytes = 0
        """Bytes that could not be written, as when the disk is full."""
        self._max_bytes = max_bytes
        self._max_line_bytes = max_line_bytes
        self._line_bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = self._open()
        self._size_bytes = os.fstat(self._descriptor).st_size

    def append(self, content: bytes) -> None:
        """Takes the next bytes of a process, which need not end with a line."""
        # In pieces no longer than a line may be, only the first line of a piece can be too long.
        for start in range(0, len(content), self._max_line_bytes):
            self._append_piece(content[start : start + self._max_line_bytes])

    def close(self) -> None:
        """Closes the file; says so when it lacks something."""
        os.close(self._descriptor)
        if self.lost_bytes:
            _log.warning(
                "log of worker incomplete path=%s lost_bytes=%s", self.path, self.lost_bytes
            )

    def _append_piece(self, piece: bytes) -> None:
        end_of_first = piece.find(b"\n")
        first = piece if end_of_first < 0 else piece[:end_of_first]
        room = max(self._max_line_bytes - self._line_bytes, 0)
        self._write(first[:room])
        self._line_bytes += len(first)
        if end_of_first < 0:
            return
        self._write(CUT_MARK if self._line_bytes > self._max_line_bytes else b"\n")
        rest = piece[end_of_first + 1 :]
        self._write(rest)
        self._line_bytes = len(rest) - (rest.rfind(b"\n") + 1)

    def _write(self, content: bytes) -> None:
        if self._size_bytes + len(content) > self._max_bytes:
            self._rotate()
        # A full disk must not stop the draining: the process would block on its next line.
        try:
            written = os.write(self._descriptor, content)
        except OSError:
            written = 0
        self._size_bytes += written
        self.lost_bytes += len(content) - written

    def _rotate(self) -> None:
        with contextlib.suppress(OSError):
            self.path.replace(self.older_path)
            opened = self._open()
            os.close(self._descriptor)
            self._descriptor = opened
        self._size_bytes = 0

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self.path, flags, 0o600)


def last_lines(path: Path, count: int) -> list[str]:
    """Returns the last lines of a log, safe to show on a terminal; none when there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            content = log.read()
    except FileNotFoundError:
        return []
    lines = content.decode("utf-8", errors="replace").splitlines()[-count:]
    return [
        "".join(
            mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}"
            for mark in line.expandtabs()
        )
        for line in lines
    ]
