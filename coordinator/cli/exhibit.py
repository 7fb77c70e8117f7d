"""What differs between the demos: what is asked, how the answer reads, what is left at the end."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from coordinator.cli.screen import Screen
from stagewire.client import Output
from stagewire.tensor import Value

Piece = tuple[str, str]
"""Name of a paragraph, and text that follows in it."""


class Exhibit(Protocol):
    """One demo: a request to a pipeline of one of our plans."""

    @property
    def pipeline(self) -> str:
        """Name of the pipeline."""

    @property
    def inputs(self) -> Mapping[str, Value]:
        """What is sent."""

    @property
    def first(self) -> tuple[str, str]:
        """Output whose first item is waited for, and what it is called."""

    def take(self, output: Output) -> Iterable[Piece]:
        """Takes one item of the answer; returns what can be read of it by now."""

    def conclude(self, screen: Screen) -> None:
        """Says what is to be said of an answer as a whole.

        Raises:
            MediaInvalidError: there was nothing in the input to be answered.
        """

    def finish(self, screen: Screen) -> None:
        """Leaves what the demo promised, below the receipt.

        Raises:
            DiskFullError: a file cannot be written.
        """

    @property
    def again(self) -> str:
        """Options of `coordinator run` that ask the same again."""
