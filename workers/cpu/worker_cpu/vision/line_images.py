"""Single lines of text, cut out of an image upright and in one height."""

from typing import Final

import cv2
import numpy as np

from stagewire.tensor import Array
from worker_cpu.vision.text_box import TextBox

_CENTRE: Final = 0.5
"""A pixel is the square around its coordinates; boxes are measured from the corner of the first."""


def line_image(image: Array, box: TextBox, height: int, most_width: int) -> Array:
    """Returns uint8 [height, width, 3] with the line that a box surrounds.

    It is taken from the image in one step, since each interpolation blurs. A line that would be
    wider than allowed is squeezed.
    """
    width = round(height * box.width / max(box.height, 1e-6))
    width = min(max(width, 1), most_width)
    # A line that is higher than wanted is cut out in a multiple of its size and then averaged.
    times = max(1, round(box.height / height))
    source = np.array([box.corner, box.corner + box.along, box.corner + box.down]) - _CENTRE
    target = np.array([(0, 0), (width, 0), (0, height)]) * times - _CENTRE
    matrix = cv2.getAffineTransform(source.astype(np.float32), target.astype(np.float32))
    line: Array = cv2.warpAffine(
        image,
        matrix,
        (width * times, height * times),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    if times > 1:
        line = cv2.resize(line, (width, height), interpolation=cv2.INTER_AREA)
    return line
