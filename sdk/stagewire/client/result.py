"""The result of a `run`: every item of every output, and the receipt."""

from dataclasses import dataclass, field

import numpy as np

from stagewire.client.receipt import Receipt
from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.tensor import Array, Value


@dataclass(frozen=True, slots=True)
class Result:
    """What a pipeline answered."""

    outputs: dict[str, list[Value]] = field(repr=False)
    """Items of each output that sent any, in order."""
    receipt: Receipt
    attempts: int = 1
    """How often the request was sent until it succeeded; more than once only where asked for."""

    def items(self, name: str) -> list[Value]:
        """Returns the items of an output, none if it sent none."""
        return self.outputs.get(name, [])

    def output(self, name: str) -> Value:
        """Returns the one item of an output.

        Raises:
            FieldInvalidError: it sent none, or more than one.
        """
        items = self.items(name)
        if len(items) != 1:
            raise FieldInvalidError(
                f"output {name!r} sent {len(items)} items, not one;"
                f" outputs with items are {', '.join(self.outputs) or 'none'}",
                output=name,
            )
        return items[0]

    def text(self, name: str) -> str:
        """Returns the items of an output of texts, joined; empty if it sent none.

        Raises:
            TensorMismatchError: an item is not a single text.
        """
        pieces = []
        for item in self.items(name):
            if not isinstance(item, str):
                raise TensorMismatchError(f"output {name!r} is not text", port=name)
            pieces.append(item)
        return "".join(pieces)

    def audio(self, name: str) -> Array:
        """Returns the items of an output of samples, joined; empty if it sent none.

        Raises:
            TensorMismatchError: an item is not a row of numbers.
        """
        pieces: list[Array] = []
        for item in self.items(name):
            if not isinstance(item, np.ndarray) or item.ndim != 1 or item.dtype.kind not in "fi":
                raise TensorMismatchError(f"output {name!r} is not a row of samples", port=name)
            pieces.append(item)
        return np.concatenate(pieces) if pieces else np.empty(0, np.float32)
