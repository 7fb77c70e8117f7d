"""Where a line of text lies in an image."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
"""x and y."""


@dataclass(frozen=True, slots=True, eq=False)
class TextBox:
    """A parallelogram around one line: where it begins, and its two sides."""

    corner: Vector
    """Upper left, seen in the direction of reading."""
    along: Vector
    """From there to where the line ends."""
    down: Vector
    """From there to its lower edge."""

    @property
    def centre(self) -> Vector:
        """The middle."""
        return self.corner + (self.along + self.down) / 2

    @property
    def width(self) -> float:
        """Length of the line."""
        return float(np.hypot(*self.along))

    @property
    def height(self) -> float:
        """From its upper to its lower edge."""
        return float(np.hypot(*self.down))

    def moved(self, by: Vector, factors: Vector) -> "TextBox":
        """Returns the box in other coordinates: first moved, then stretched."""
        return TextBox((self.corner + by) * factors, self.along * factors, self.down * factors)
