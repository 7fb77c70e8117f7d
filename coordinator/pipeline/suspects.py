"""Requests that were executed when a worker died: which one kills workers, and is refused. Pure.

A death ends every request on the worker, but only one that was executed in that moment can be the
cause. The first death blames nobody: memory of the machine or a person may have ended the process.
At the second death of a worker under the same request, that request is found poisonous and is not
run again. Where two were there at both deaths, nobody can tell which it was: from then on they
run apart, so that the next death tells. Success clears a request.
"""

from collections import OrderedDict
from collections.abc import Container

from coordinator.facts.ids import Incarnation, RequestId
from stagewire.errors import (
    LaneFullError,
    RequestPoisonousError,
    StageError,
    WorkerHungError,
    WorkerLostError,
)
from stagewire.limits import SUSPECTS

_DEATHS = 2
_RETRY_MS = 500


class Suspects:
    """Remembers requests by the deaths that they were there for, the latest `most` of them."""

    def __init__(self, most: int = SUSPECTS) -> None:
        self._most = most
        self._deaths: OrderedDict[RequestId, int] = OrderedDict()
        self._poisonous: set[RequestId] = set()
        self._judged: Incarnation | None = None

    def __len__(self) -> int:
        """Returns how many requests are remembered."""
        return len(self._deaths)

    def admit(self, request: RequestId, running: Container[RequestId]) -> None:
        """Lets a request through, or refuses it.

        Raises:
            RequestPoisonousError: workers died twice while they executed it.
            LaneFullError: another request that may be the poisonous one is running.
        """
        if request in self._poisonous:
            raise _poisonous(request, self._deaths[request])
        if self._deaths.get(request, 0) < _DEATHS:
            return
        if any(deaths >= _DEATHS and other in running for other, deaths in self._deaths.items()):
            raise LaneFullError(
                f"workers died while they executed request {request!r}; it runs apart from others"
                " of which that is true",
                retry_delay_ms=_RETRY_MS,
                id=request,
            )

    def judge(
        self,
        request: RequestId,
        error: StageError,
        incarnation: Incarnation,
        executed: frozenset[RequestId],
    ) -> StageError:
        """Returns the failure of a request whose worker is lost with an error.

        Called for each request on that incarnation; the death counts once, for those executed.
        """
        if not isinstance(error, (WorkerLostError, WorkerHungError)):
            return error
        if incarnation != self._judged:
            self._judged = incarnation
            self._count(executed)
        if request in executed and request in self._poisonous:
            return _poisonous(request, self._deaths[request])
        return error

    def clear(self, request: RequestId) -> None:
        """Forgets a request that ended well."""
        self._deaths.pop(request, None)
        self._poisonous.discard(request)

    def _count(self, executed: frozenset[RequestId]) -> None:
        for request in executed:
            self._deaths[request] = self._deaths.pop(request, 0) + 1
        most = max((self._deaths[request] for request in executed), default=0)
        first = [request for request in executed if self._deaths[request] == most]
        if most >= _DEATHS and len(first) == 1:
            self._poisonous.add(first[0])
        while len(self._deaths) > self._most:
            forgotten, _ = self._deaths.popitem(last=False)
            self._poisonous.discard(forgotten)


def _poisonous(request: RequestId, deaths: int) -> RequestPoisonousError:
    return RequestPoisonousError(
        f"workers died {deaths} times while they executed request {request!r}; it is not run again",
        id=request,
        deaths=deaths,
    )
