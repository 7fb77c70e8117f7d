"""The flow out of one source: order, port rules, and the credit that its consumers give back.

Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from coordinator.pipeline.topology import Endpoint, Source
from stagewire.chunks import ChunkOrder, transport_of
from stagewire.credit import Credit
from stagewire.errors import PayloadCorruptError, StageError, TensorMismatchError
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
    is_closed: bool = False
    """Whether the consumer takes nothing more; it then holds the source back no longer."""


class Flow:
    """Items of one source in one request; a consumer's slowness holds the source back."""

    def __init__(self, source: Source, targets: tuple[Endpoint, ...]) -> None:
        self.source = source
        self.hops = tuple(Hop(target) for target in targets)
        self.has_ended = False
        self._order = ChunkOrder(str(source.origin))
        self._window = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self._whole_bytes = 0
        self._granted_items = 0
        self._granted_bytes = 0

    @property
    def open_hops(self) -> Iterator[Hop]:
        """Hops whose consumer takes items."""
        return (hop for hop in self.hops if not hop.is_closed)

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
            self._whole_bytes += descriptor.size_bytes
            for hop in self.open_hops:
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

        Raises:
            PayloadCorruptError: it got fewer; credit is believed from nobody.
        """
        hop = next(hop for hop in self.hops if hop.target == target)
        if hop.done_items + items > hop.items or hop.done_bytes + size_bytes > hop.size_bytes:
            raise PayloadCorruptError(
                f"the consumer {target} gave back more than the {hop.items} items that it got"
            )
        hop.done_items += items
        hop.done_bytes += size_bytes
        return self.take_credit()

    def close(self, target: Endpoint) -> tuple[int, int]:
        """Notes that a consumer takes nothing more; returns the credit to give the source."""
        for hop in self.hops:
            hop.is_closed = hop.is_closed or hop.target == target
        return self.take_credit()

    def take_credit(self) -> tuple[int, int]:
        """Returns the items and bytes that the source may be given now.

        With several consumers the slowest decides: the source gets back what all have finished
        with. What nobody consumes counts as finished.
        """
        hops = list(self.open_hops)
        items = min((hop.done_items for hop in hops), default=self._order.items)
        size_bytes = min((hop.done_bytes for hop in hops), default=self._whole_bytes)
        grant = items - self._granted_items, size_bytes - self._granted_bytes
        self._granted_items, self._granted_bytes = items, size_bytes
        self._window.grant(*grant)
        return grant
