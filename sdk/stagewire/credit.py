"""Credit: how much a consumer still accepts. Counts only; waiting is its owner's matter."""

from dataclasses import dataclass
from typing import Final

from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS

_PART: Final = 4
"""A consumer gives back once this part of a window is due: few messages, and no producer waits."""


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


@dataclass(slots=True)
class Due:
    """What a consumer has finished with and not given back yet.

    It is held back until it is a quarter of the window. A producer therefore always has the other
    three quarters, and a short stream costs no message of credit at all.
    """

    items: int = 0
    size_bytes: int = 0

    def add(self, items: int, size_bytes: int) -> "Due | None":
        """Adds finished items; returns what is to be given back now, if anything."""
        self.items += items
        self.size_bytes += size_bytes
        if self.items * _PART < WINDOW_ITEMS and self.size_bytes * _PART < WINDOW_BYTES:
            return None
        due = Due(self.items, self.size_bytes)
        self.items = self.size_bytes = 0
        return due
