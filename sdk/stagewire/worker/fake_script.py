"""Fault scripts of the fake: what harm is done, and when."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stagewire.errors import FieldInvalidError, LoadFailedError, StageFaultError
from stagewire.tensor import Value

MOMENTS: Final = ("load", "start", "item", "end")
SPOILS: Final = ("nan", "wrong_shape", "wrong_type")
"""Deeds that change the items that are sent."""
KEEPS: Final = ("leak", "map")
"""Deeds that keep memory: of their own, or the pages of the artifact."""
_LONG_SECONDS: Final = 3600
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Deed:
    """One line of a fault script."""

    do: str
    on: str = "item"
    after: int = 0
    seconds: float = 1.0
    size_bytes: int = 1 << 20
    value: float | None = None
    """First element of the items at which it is done; None for all."""

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "Deed":
        """Reads one line (JSON values, hence Any).

        Raises:
            FieldInvalidError: it has an unknown field or deed.
        """
        try:
            deed = cls(**line)
        except TypeError:
            raise FieldInvalidError(f"a line of a fault script cannot be read: {line}") from None
        if deed.do not in (*HARM, *SPOILS, *KEEPS) or deed.on not in MOMENTS:
            raise FieldInvalidError(f"a line of a fault script is unknown: {line}")
        return deed

    def is_due(self, moment: str, item_count: int, item: Value | None) -> bool:
        """Whether it is done at a moment, at that number of items so far, the last one `item`."""
        if moment != self.on:
            return False
        if moment != "item":
            return True
        # At every item after the first ones, or harm that heals itself would be missed.
        return item_count > self.after and (self.value is None or self._begins(item))

    def _begins(self, item: Value | None) -> bool:
        return isinstance(item, np.ndarray) and item.size > 0 and item.flat[0] == self.value


def _hang_with_gil(deed: Deed, _: str) -> None:
    # PyDLL keeps the GIL during the call, so that no thread of Python runs meanwhile.
    ctypes.PyDLL(None).sleep(int(deed.seconds) or _LONG_SECONDS)


def _spin(deed: Deed, _: str) -> None:
    # Nothing but Python, which holds the GIL for all but a moment every few milliseconds.
    until = time.monotonic() + deed.seconds
    while time.monotonic() < until:
        pass


def _raise(_: Deed, __: str) -> None:
    # No failure of the table: what an executor's library might raise, with a path in its text.
    raise RuntimeError("the library failed in /somewhere/secret.py")


def _refuse(deed: Deed, stage_id: str) -> None:
    if deed.on == "load":
        raise LoadFailedError(f"stage {stage_id!r} refuses to be loaded")
    raise StageFaultError(f"stage {stage_id!r} refuses its input")


def _flood(deed: Deed, _: str) -> None:
    piece, left = b"x" * min(deed.size_bytes, _PIECE_BYTES), deed.size_bytes
    while left > 0:
        left -= os.write(2, piece[:left])


def _start_child(deed: Deed, _: str) -> None:
    # As every child of a worker must, it binds itself to the worker first of all.
    code = (
        "import time; from stagewire.worker.lifeline_linux import die_with_parent;"
        f" die_with_parent({os.getpid()}); time.sleep({deed.seconds})"
    )
    subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.DEVNULL)


HARM: Final[Mapping[str, Callable[[Deed, str], object]]] = {
    "crash": lambda _, __: os.kill(os.getpid(), signal.SIGKILL),
    # By the thread itself: a signal that is sent may be taken by another one, somewhat later.
    "segfault": lambda _, __: ctypes.string_at(0),
    "exit": lambda _, __: os._exit(0),
    "hang": lambda deed, _: time.sleep(deed.seconds if deed.seconds > 1 else _LONG_SECONDS),
    "hang_gil": _hang_with_gil,
    "slow": lambda deed, _: time.sleep(deed.seconds),
    "spin": _spin,
    "raise": _raise,
    "refuse": _refuse,
    "flood": _flood,
    "child": _start_child,
}
"""Deeds by name; each gets its line and the id of its stage."""
