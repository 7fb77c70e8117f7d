"""Credit: how much a consumer still accepts. Counts only; waiting is its owner's matter."""

from dataclasses import dataclass


@dataclass(slots=True)
class Credit:
    """Items and payload bytes that may still be sent on one port of one execution.

    An item may leave when an item and any byte are left: the bytes may then fall below zero, so
    that an item larger than the whole window passes alone instead of never.
    """

    items: int
    size_bytes: int

    @property
    def is_open(self) -> bool:
        """Whether one more item may leave."""
        return self.items > 0 and self.size_bytes > 0

    def spend(self, size_bytes: int) -> None:
        """Charges one item that leaves."""
        self.items -= 1
        self.size_bytes -= size_bytes

    def grant(self, items: int, size_bytes: int) -> None:
        """Adds what the consumer has acknowledged."""
        self.items += items
        self.size_bytes += size_bytes
