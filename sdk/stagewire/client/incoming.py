"""Items of the outputs of one request on their way in: order, sizes, ends and credit."""

from typing import Final

from stagewire.credit import Credit
from stagewire.errors import PayloadCorruptError
from stagewire.items import Assembler, ReceivedItem
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import tensor_pb2

_GRANT_ITEMS: Final = WINDOW_ITEMS // 2
_GRANT_BYTES: Final = WINDOW_BYTES // 2


class Outputs:
    """Puts the items of every output together."""

    def __init__(self) -> None:
        self._assemblers: dict[str, Assembler] = {}
        self._counts: dict[str, int] = {}
        self._ended: set[str] = set()

    def accept(self, item: tensor_pb2.Item, payload: memoryview) -> ReceivedItem | None:
        """Takes the next chunk; returns the item when it is whole.

        Raises:
            PayloadCorruptError: it is damaged, or not what must follow.
            FieldInvalidError: its descriptor contradicts itself.
            MessageTooBigError: its tensor is over a limit.
        """
        port = item.port
        if port in self._ended:
            raise PayloadCorruptError(f"output {port!r} sent an item after its end")
        assembler = self._assemblers.get(port)
        if assembler is None:
            assembler = self._assemblers[port] = Assembler(port)
        received = assembler.accept(item, payload)
        if received is not None:
            self._counts[port] = received.sequence + 1
        return received

    def end(self, port: str, item_count: int) -> None:
        """Takes the end of an output.

        Raises:
            PayloadCorruptError: items are missing.
        """
        self._check_whole(port)
        if self._counts.get(port, 0) != item_count:
            raise PayloadCorruptError(
                f"output {port!r} sent {self._counts.get(port, 0)} items of {item_count}"
            )
        self._ended.add(port)

    def finish(self) -> None:
        """Takes the end of the request.

        Raises:
            PayloadCorruptError: an item is not whole.
        """
        for port in self._assemblers:
            self._check_whole(port)

    def _check_whole(self, port: str) -> None:
        assembler = self._assemblers.get(port)
        if assembler is not None and not assembler.is_between_items:
            raise PayloadCorruptError(f"output {port!r} ended inside an item")


class Window:
    """Credit of one output, at the end that grants it.

    Both ends begin with the whole window. What was consumed is granted back in halves of it, so
    that a stream of small items does not cost a message for each.
    """

    def __init__(self) -> None:
        self._left = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self._consumed_items = 0
        self._consumed_bytes = 0

    def take(self, port: str, size_bytes: int) -> None:
        """Charges an item that begins to arrive.

        Raises:
            PayloadCorruptError: it had no credit.
        """
        if not self._left.is_open:
            raise PayloadCorruptError(f"output {port!r} sent more than its credit")
        self._left.spend(size_bytes)

    def consume(self, size_bytes: int) -> tuple[int, int] | None:
        """Notes a consumed item; returns items and bytes to grant when it is time to."""
        self._consumed_items += 1
        self._consumed_bytes += size_bytes
        if self._consumed_items < _GRANT_ITEMS and self._consumed_bytes < _GRANT_BYTES:
            return None
        grant = self._consumed_items, self._consumed_bytes
        self._consumed_items = self._consumed_bytes = 0
        self._left.grant(*grant)
        return grant
