"""Request ids that are running or remembered, and when one may come again. Pure."""

from collections import OrderedDict
from dataclasses import dataclass

from coordinator.facts.ids import RequestId
from stagewire.errors import RequestDuplicateError
from stagewire.limits import REMEMBERED_REQUESTS

_RETRY_MS = 200


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    has_failed: bool = False


class KnownIds:
    """A request runs once, unless its caller says that it may run again and its attempt failed."""

    def __init__(self) -> None:
        self._running: dict[RequestId, _Attempt] = {}
        self._ended: OrderedDict[RequestId, _Attempt] = OrderedDict()

    def check(self, request: RequestId, attempt: int, *, is_idempotent: bool) -> None:
        """Lets an attempt through, or refuses it.

        Raises:
            RequestDuplicateError: the request is running, was answered, or may not run again; with
                a retry delay when an earlier attempt has still to end.
        """
        before = self._running.get(request) or self._ended.get(request)
        if before is None:
            return
        is_next = is_idempotent and attempt > before.number
        is_running = request in self._running
        if is_next and before.has_failed and not is_running:
            return
        raise RequestDuplicateError(
            f"request {request!r} {'is running' if is_running else 'was sent before'}",
            retry_delay_ms=_RETRY_MS if is_next and is_running else None,
            id=request,
        )

    def begin(self, request: RequestId, attempt: int) -> None:
        """Notes an attempt that was let through."""
        self._ended.pop(request, None)
        self._running[request] = _Attempt(attempt)

    def end(self, request: RequestId, *, has_failed: bool) -> None:
        """Notes that nothing of an attempt is held any more."""
        self._ended[request] = _Attempt(self._running.pop(request).number, has_failed)
        if len(self._ended) > REMEMBERED_REQUESTS:
            self._ended.popitem(last=False)
