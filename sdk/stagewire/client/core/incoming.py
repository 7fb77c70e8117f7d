"""Items of the outputs of one request on their way in: order, sizes, ends and credit."""

from stagewire.credit import Credit, Due
from stagewire.errors import PayloadCorruptError
from stagewire.items import Assembler, ReceivedItem
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import tensor_pb2


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
    """Credit of one output, at the end that grants it. Both ends begin with the whole window."""

    def __init__(self) -> None:
        self._left = Credit(WINDOW_ITEMS, WINDOW_BYTES)
        self._due = Due()

    def take(self, port: str, size_bytes: int) -> None:
        """Charges an item that begins to arrive.

        Raises:
            PayloadCorruptError: it had no credit.
        """
        if not self._left.is_open:
            raise PayloadCorruptError(f"output {port!r} sent more than its credit")
        self._left.spend(size_bytes)

    def consume(self, size_bytes: int) -> Due | None:
        """Notes a consumed item; returns what is to be granted now, if anything."""
        due = self._due.add(1, size_bytes)
        if due is not None:
            self._left.grant(due.items, due.size_bytes)
        return due
