"""The log of a coordinator: a file in its state folder, rotated."""

import contextlib
import logging
import logging.handlers
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stagewire.limits import LOG_BYTES

_FORM: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_OWN_LOGGERS: Final = ("coordinator", "stagewire")


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Writes what the block logs to a file; one older file is kept."""
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
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
