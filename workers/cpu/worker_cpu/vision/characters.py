"""From steps of a recogniser to text (connectionist temporal classification, "CTC")."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from stagewire.errors import FieldInvalidError, FormatUnsupportedError
from stagewire.tensor import Array

_KEY: Final = "character"
"""Under which PaddleOCR's models keep their characters, one a line."""
_BLANK: Final = 0
"""Class that stands for no character, and parts two equal ones."""


def read_characters(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the text of each class: nothing, the model's characters, a space.

    Raises:
        FormatUnsupportedError: the model has no list of characters.
    """
    if not metadata.get(_KEY):
        raise FormatUnsupportedError(
            f"the model has no characters under {_KEY!r} in its metadata;"
            " name a text recogniser of PaddleOCR"
        )
    return ("", *metadata[_KEY].splitlines(), " ")


def decode_line(
    classes: Array, probabilities: Array, characters: Sequence[str]
) -> tuple[str, float]:
    """Returns a text and the mean probability of its characters, 0 for no text.

    Raises:
        FieldInvalidError: a class is not one of the model's, or a probability is no number.
    """
    if classes.shape != probabilities.shape:
        raise FieldInvalidError(
            f"a line has {classes.size} classes and {probabilities.size} probabilities"
        )
    if classes.size and not 0 <= classes.min() <= classes.max() < len(characters):
        raise FieldInvalidError(
            f"a line has the class {classes.max()}; the model has {len(characters)} characters"
        )
    if not np.isfinite(probabilities).all():
        raise FieldInvalidError("a line has a probability that is not a number")
    taken = classes != _BLANK
    taken[1:] &= classes[1:] != classes[:-1]
    text = "".join(characters[index] for index in classes[taken])
    return text, float(probabilities[taken].mean()) if taken.any() else 0.0
