"""Whether a request that failed is tried again, and after which time.

The budget is gRPC's own retry throttling (gRFC A6, "Throttling Retry Attempts and Hedged RPCs"): a
client has a number of tokens; a failure that may be retried costs one, a success gives a tenth
back, and nothing is retried while half or fewer are left. So a broken coordinator gets at most a
tenth more calls than without retries. Delays are A6's as well, exponential with a jitter of a
fifth, but they begin at what the coordinator asks for, where it does, and never fall below.
"""

from dataclasses import dataclass
from typing import Final

from stagewire.errors import FieldInvalidError, RequestDuplicateError, StageError
from stagewire.limits import ATTEMPTS

_TOKENS: Final = 10.0
_TOKENS_BACK: Final = 0.1
_FIRST_SECONDS: Final = 0.05
_FACTOR: Final = 2.0
_LONGEST_SECONDS: Final = 5.0
_JITTER: Final = 0.2


@dataclass(slots=True)
class Budget:
    """Tokens of one client."""

    tokens: float = _TOKENS

    @property
    def allows_retry(self) -> bool:
        """Whether there is anything to spend."""
        return self.tokens > _TOKENS / 2

    def note_failure(self) -> None:
        """Counts a failure that may be retried."""
        self.tokens = max(0.0, self.tokens - 1)

    def note_success(self) -> None:
        """Counts a success."""
        self.tokens = min(_TOKENS, self.tokens + _TOKENS_BACK)


class Attempts:
    """The attempts at one request."""

    def __init__(self, budget: Budget, *, is_idempotent: bool) -> None:
        self.number = 1
        self._budget = budget
        self._is_idempotent = is_idempotent

    def succeed(self) -> None:
        """Notes that the present attempt has succeeded."""
        self._budget.note_success()

    def fail(
        self, failure: BaseException | None, seconds_left: float | None, chance: float
    ) -> float | None:
        """Notes that the present attempt has failed; returns the seconds until the next one.

        None says that there is none, because the request may not run twice, the failure is none
        that another attempt mends, or attempts, budget or time are used up. `chance` is between 0
        and 1.
        """
        if not isinstance(failure, StageError):
            return None
        if self._is_idempotent:
            failure.facts.setdefault("attempts", str(self.number))
        if not _may_pass(failure):
            return None
        self._budget.note_failure()
        if not self._is_idempotent or self.number >= ATTEMPTS or not self._budget.allows_retry:
            return None
        asked = (failure.retry_delay_ms or 0) / 1000
        delay = max(_FIRST_SECONDS, asked) * _FACTOR ** (self.number - 1)
        delay = max(asked, min(_LONGEST_SECONDS, delay) * (1 + _JITTER * (2 * chance - 1)))
        if seconds_left is not None and delay >= seconds_left:
            return None
        self.number += 1
        return delay


def _may_pass(failure: StageError) -> bool:
    # A duplicate that is to be waited for is an earlier attempt whose executors still let go of it.
    is_ending = isinstance(failure, RequestDuplicateError) and failure.retry_delay_ms is not None
    return failure.is_retryable or is_ending


def check_replayable(name: str, source: object) -> None:
    """Checks that an input can be sent a second time.

    Raises:
        FieldInvalidError: it is an iterator, which is used up by the first attempt.
    """
    if hasattr(source, "__next__") or hasattr(source, "__anext__"):
        raise FieldInvalidError(
            f"input {name!r} is an iterator, which can be read only once; an idempotent request"
            " needs a value, or a list of values",
            field=name,
        )
