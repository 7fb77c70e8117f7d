"""How a call ended, and the condition that everything around it waits on."""

import threading


class Outcome:
    """Set once; the first word holds. Every wait of a call is on `changed`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.is_over = False
        # Also what an iterator of the caller raised while it was read for its items.
        self.failure: BaseException | None = None

    def settle(self, failure: BaseException | None) -> None:
        """Ends the call, with success for None, if it had not ended before."""
        with self.changed:
            if not self.is_over:
                self.is_over = True
                self.failure = failure
                self.changed.notify_all()

    def check(self) -> None:
        """Returns while the call goes on and when it has succeeded.

        Raises:
            StageError: what it failed with.
        """
        if self.failure is not None:
            raise self.failure
