"""The input side of one call: credit, order and ends of every input port."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewire import frame
from stagewire.chunks import chunks_of
from stagewire.client.outcome import Outcome
from stagewire.client.outgoing import Outgoing
from stagewire.credit import Credit
from stagewire.errors import CancelledError, FieldInvalidError
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb


@dataclass(slots=True)
class _Input:
    credit: Credit = field(default_factory=lambda: Credit(0, 0))
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held while an item is cut up: the chunks of two items of one port must not mix."""
    items: int = 0
    is_ended: bool = False


class Inputs:
    """Sends items as far as the coordinator has given credit."""

    def __init__(self, outgoing: Outgoing, outcome: Outcome) -> None:
        self._outgoing = outgoing
        self._outcome = outcome
        self._ports: Mapping[str, _Input] | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the coordinator has named the ports."""
        return self._ports is not None

    def accept(self, credits: Mapping[str, Credit]) -> None:
        """Takes the ports of the pipeline and their first credit."""
        with self._outcome.changed:
            self._ports = {name: _Input(credit) for name, credit in credits.items()}
            self._outcome.changed.notify_all()

    def grant(self, port: str, items: int, size_bytes: int) -> None:
        """Takes more credit."""
        with self._outcome.changed:
            if self._ports is not None and port in self._ports:
                self._ports[port].credit.grant(items, size_bytes)
                self._outcome.changed.notify_all()

    def send(self, port: str, value: Value) -> None:
        """Sends one item, waiting for credit.

        Raises:
            FieldInvalidError: there is no such port, it has ended, or the value has no wire type.
            StageError: the call failed.
        """
        descriptor, payload = encode(value)
        target = self._port(port)
        with target.turn:
            self._spend(port, target, descriptor.size_bytes)
            for chunk in chunks_of(port, target.items, descriptor, payload):
                header = pb.InferRequest(item=chunk.item).SerializeToString()
                if not self._outgoing.put(frame.join(header, [chunk.payload])):
                    self._check_going_on()
            target.items += 1

    def end(self, port: str) -> None:
        """Ends one port; nothing happens when it had ended.

        Raises:
            FieldInvalidError: there is no such port.
            StageError: the call failed.
        """
        target = self._port(port)
        with target.turn:
            if not target.is_ended:
                target.is_ended = True
                message = pb.InferRequest(end_of_input=pb.EndOfInput(port=port))
                if not self._outgoing.put(message.SerializeToString()):
                    self._outcome.check()

    def end_all(self, but: frozenset[str]) -> None:
        """Ends every port except some.

        Raises:
            StageError: the call failed.
        """
        for port in self._accepted():
            if port not in but:
                self.end(port)

    def _spend(self, port: str, target: _Input, size_bytes: int) -> None:
        with self._outcome.changed:
            self._outcome.changed.wait_for(
                lambda: target.credit.is_open or target.is_ended or self._outcome.is_over
            )
            self._check_going_on()
            if target.is_ended:
                raise FieldInvalidError(f"input {port!r} has ended; it takes no more items")
            target.credit.spend(size_bytes)

    def _check_going_on(self) -> None:
        self._outcome.check()
        if self._outcome.is_over:
            raise CancelledError("the request ended before all of its input was sent")

    def _accepted(self) -> Mapping[str, _Input]:
        with self._outcome.changed:
            self._outcome.changed.wait_for(lambda: self._ports is not None or self._outcome.is_over)
            # A call that failed early says so here, also to who only ends its ports.
            self._outcome.check()
            return self._ports or {}

    def _port(self, port: str) -> _Input:
        ports = self._accepted()
        if port not in ports:
            raise FieldInvalidError(
                f"the pipeline has no input {port!r}; it has {', '.join(ports) or 'none'}",
                port=port,
            )
        return ports[port]
