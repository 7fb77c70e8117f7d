"""How long executions of a stage take, so that one that cannot make its deadline is not started.

Pure.
"""

from collections import deque
from typing import Final

_REMEMBERED: Final = 32
_ENOUGH: Final = 5


class StageHistory:
    """Busy times of the last executions of one stage, in seconds."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)

    def note(self, busy_seconds: float) -> None:
        """Adds one execution that ended well."""
        self._seconds.append(busy_seconds)

    @property
    def quickest_seconds(self) -> float | None:
        """The quickest of the last executions; None until there are enough to judge by.

        Not the middle one: after a row of long inputs a short one must still get its chance.
        """
        return min(self._seconds) if len(self._seconds) >= _ENOUGH else None
