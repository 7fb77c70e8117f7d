"""The flow out of one source: order, port rules, and the credit that its consumers give back.

Pure.
"""

from dataclasses import dataclass, field

from coordinator.pipeline.topology import Endpoint, Source
from stagewire.credit import Credit
from stagewire.errors import PayloadCorruptError, StageError, TensorMismatchError
from stagewire.items import ChunkOrder, transport_of
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import tensor_pb2 as pb


@dataclass(slots=True)
class Hop:
    """What crossed one edge, and how much of it the consumer has finished with."""

    target: Endpoint
    items: int = 0
    size_bytes: int = 0
    transports: set[str] = field(default_factory=set)
    done_items: int = 0
    done_bytes: int = 0


class Flow:
    """Items of one source in one request; a consumer's slowness holds the source back."""

    def __init__(self, source: Source, targets: tuple[Endpoint, ...]) -> None:
        self.source = source
        self.hops = tuple(Hop(target) for target in targets)
        self.has_ended = False
        self._order = ChunkOrder(str(source.origin))
        self._window = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self._granted_items = 0
        self._granted_bytes = 0

    def accept(self, item: pb.Item) -> bool:
        """Takes the next chunk; returns whether its item is now whole.

        Raises:
            StageError: the chunk is out of order or breaks the rules of the port.
        """
        if self.has_ended:
            raise PayloadCorruptError(f"an item came after the end of {self.source.origin}")
        is_first = self._order.is_between_items
        descriptor, is_whole = self._order.accept(item)
        if is_first:
            self.source.port.check(descriptor)
            # Both ends count alike; without this check one sender could fill the coordinator.
            if not self._window.is_open:
                raise PayloadCorruptError(f"{self.source.origin} sent more than its credit")
            self._window.spend(descriptor.size_bytes)
            if self._order.items - is_whole > 0 and not self.source.port.is_stream:
                raise TensorMismatchError(
                    f"port {self.source.port.name!r} is no stream and got a second item"
                )
        if is_whole:
            for hop in self.hops:
                hop.items += 1
                hop.size_bytes += descriptor.size_bytes
                hop.transports.add(transport_of(descriptor.size_bytes))
        return is_whole

    def end(self, item_count: int | None) -> StageError | None:
        """Ends the flow; returns why that is not right, if it is not."""
        self.has_ended = True
        count = self._order.items
        if not self._order.is_between_items or (item_count is not None and item_count != count):
            return PayloadCorruptError(f"{self.source.origin} ended inside an item")
        if not self.source.port.is_stream and count != 1:
            return TensorMismatchError(
                f"port {self.source.port.name!r} needs one item and got {count}"
            )
        return None

    def finish_items(self, target: Endpoint, items: int, size_bytes: int) -> tuple[int, int]:
        """Notes that a consumer has finished with items; returns the credit to give the source.

        With several consumers the slowest decides: the source gets back what all have finished
        with.
        """
        for hop in self.hops:
            if hop.target == target:
                hop.done_items += items
                hop.done_bytes += size_bytes
        return self._grant(
            min(hop.done_items for hop in self.hops), min(hop.done_bytes for hop in self.hops)
        )

    def finish_unconsumed(self, size_bytes: int) -> tuple[int, int]:
        """Returns the credit for one item that no consumer takes."""
        return self._grant(self._granted_items + 1, self._granted_bytes + size_bytes)

    def _grant(self, items: int, size_bytes: int) -> tuple[int, int]:
        grant = items - self._granted_items, size_bytes - self._granted_bytes
        self._granted_items, self._granted_bytes = items, size_bytes
        self._window.grant(*grant)
        return grant
