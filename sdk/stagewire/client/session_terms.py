"""What both sessions have in common: their terms, and the requests that carry them."""

from collections.abc import Iterable
from typing import ClassVar

from stagewire.client.core.requests import Order
from stagewire.client.given import check_seconds
from stagewire.client.orders import make_order
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds


class SessionTerms:
    """A session of one pipeline as its client knows it, before it is opened and after."""

    _entering: ClassVar[str]
    """How a session of the class is entered."""

    def __init__(self, pipeline: str, idle_timeout: float | None) -> None:
        self.pipeline = pipeline
        self._idle_timeout = check_seconds("idle_timeout", idle_timeout)
        self._opened: pb.OpenSessionResponse | None = None

    @property
    def session_id(self) -> str:
        """Id that the coordinator gave it."""
        return self._entered().session_id

    @property
    def lease_seconds(self) -> float:
        """Time without a request or `renew` after which it ends by itself."""
        return to_seconds(self._entered().lease)

    def _opening(self) -> pb.OpenSessionRequest:
        if self._opened is not None:
            raise RuntimeError("a session is entered once; ask the client for another")
        seconds = self._idle_timeout
        idle = None if seconds is None else to_duration(seconds)
        return pb.OpenSessionRequest(pipeline=self.pipeline, idle_timeout=idle)

    def _order(
        self, request_id: str | None, outputs: Iterable[str] | None, is_idempotent: bool
    ) -> Order:
        return make_order(
            self.pipeline,
            request_id,
            outputs,
            is_idempotent=is_idempotent,
            session_id=self.session_id,
        )

    def _entered(self) -> pb.OpenSessionResponse:
        if self._opened is None:
            raise RuntimeError(f"a session opens when it is entered: `{self._entering}`")
        return self._opened
