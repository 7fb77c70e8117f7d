"""The log of a coordinator: a file in its state folder, rotated."""

import contextlib
import io
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stagewire.errors import PathForbiddenError
from stagewire.limits import LOG_BYTES

_FORM: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_OWN_LOGGERS: Final = ("coordinator", "stagewire")


class PrivateLog(logging.handlers.RotatingFileHandler):
    """A log that its owner alone reads, in a file that is no link."""

    _is_losing = False

    def _open(self) -> io.TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        try:
            # Also that of an earlier version, which let others read it.
            os.fchmod(descriptor, 0o600)
        except OSError:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Says once on standard error that lines are lost, such as on a disk that is full."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._is_losing:
            self._is_losing = True
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(
                    f"WARNING: the log {self.baseFilename} cannot be written: {error.strerror};"
                    " lines are lost until it can\n"
                )

    def close(self) -> None:
        """Closes the file; what cannot be written any more keeps nothing from ending."""
        with contextlib.suppress(OSError):
            super().close()


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Writes what the block logs to a file; one older file is kept.

    Raises:
        PathForbiddenError: the file cannot be written, or is a link.
    """
    try:
        handler = PrivateLog(path, maxBytes=LOG_BYTES, backupCount=1)
    except OSError as error:
        raise PathForbiddenError(
            f"the log {path} cannot be written: {error.strerror}; remove it, or name another state"
            " folder with --state"
        ) from error
    handler.setFormatter(logging.Formatter(_FORM))
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    levels = {name: logging.getLogger(name).level for name in _OWN_LOGGERS}
    for name in _OWN_LOGGERS:
        if not 0 < levels[name] <= logging.INFO:
            logging.getLogger(name).setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
