"""Images as models take them: other sizes, floats, channels first."""

import cv2
import numpy as np

from stagewire.tensor import Array


def resized(image: Array, width: int, height: int) -> Array:
    """Returns an image in another size: averages where it shrinks, interpolates where it grows."""
    shrinks = width * height < image.shape[0] * image.shape[1]
    way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    result: Array = cv2.resize(image, (width, height), interpolation=way)
    return result


def bordered(image: Array, left: int, top: int, width: int, height: int) -> Array:
    """Returns an image inside a larger one, around which its outermost pixels are repeated."""
    right, bottom = width - image.shape[1] - left, height - image.shape[0] - top
    result: Array = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_REPLICATE)
    return result


def normalised(image: Array, offset: float, divisor: float) -> Array:
    """Returns float32 [1, channels, height, width] of (pixel - offset) / divisor."""
    planes = np.ascontiguousarray(image.transpose(2, 0, 1)[None], dtype=np.float32)
    planes -= np.float32(offset)
    planes /= np.float32(divisor)
    return planes
