"""The time that all calls of one request have together."""

import time

from stagewire.client.given import check_seconds
from stagewire.errors import DeadlineExceededError


class Deadline:
    """A moment of the monotonic clock, or none."""

    def __init__(self, timeout: float | None) -> None:
        seconds = check_seconds("timeout", timeout)
        self._at = None if seconds is None else time.monotonic() + seconds

    def seconds_left(self) -> float | None:
        """Returns the time that is left; None for as long as it takes.

        Raises:
            DeadlineExceededError: none is left.
        """
        left = self.left()
        if left is not None and left <= 0:
            raise DeadlineExceededError("the deadline passed before the request was sent")
        return left

    def left(self) -> float | None:
        """Returns the time that is left, at most nothing; None for as long as it takes."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())
