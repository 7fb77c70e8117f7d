"""From the map of a text detector to boxes around lines (differentiable binarization, "DB").

The detector marks the core of each line, thinner than the line. A region that is sure enough gets
its smallest rectangle, which then grows on all sides by a part of its area over its circumference.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from stagewire.tensor import Array
from worker_cpu.vision.text_box import TextBox

_LEAST_SIDE: Final = 3
"""Thinner regions are specks."""
_SHORT: Final = 1.5
"""Up to this ratio of its sides a box may be one character, whose long side says nothing."""


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """When a region is a line of text, and how much its rectangle grows."""

    threshold: float
    """Probability from which a pixel is text."""
    box_threshold: float
    """Mean probability from which a rectangle is a line."""
    growth: float
    """Part of area over circumference by which each side moves out."""
    most_lines: int
    """Regions that are looked at, the largest first."""


def find_boxes(probabilities: Array, settings: BoxSettings) -> list[TextBox]:
    """Returns the boxes of a map [height, width], in no particular order."""
    mask = (probabilities > settings.threshold).astype(np.uint8)
    # Bridges hairline gaps between the characters of a line.
    mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    contours = sorted(contours, key=cv2.contourArea, reverse=True)[: settings.most_lines]
    return list(_boxes(probabilities, contours, settings))


def _boxes(probabilities: Array, contours: list[Array], settings: BoxSettings) -> Iterator[TextBox]:
    for contour in contours:
        middle, (width, height), angle = cv2.minAreaRect(contour)
        if min(width, height) < _LEAST_SIDE:
            continue
        corners = cv2.boxPoints((middle, (width, height), angle))
        if _mean_inside(probabilities, corners) >= settings.box_threshold:
            grown = settings.growth * width * height / (width + height)
            yield _box(middle, width + grown, height + grown, angle)


def _mean_inside(probabilities: Array, corners: Array) -> float:
    height, width = probabilities.shape
    left, top = (max(int(extent), 0) for extent in np.floor(corners.min(axis=0)))
    right, bottom = (int(extent) + 1 for extent in np.ceil(corners.max(axis=0)))
    window = probabilities[top : min(bottom, height), left : min(right, width)]
    inside = np.zeros(window.shape, np.uint8)
    cv2.fillPoly(inside, [(corners - (left, top)).astype(np.int32)], 1)
    return float(cv2.mean(window, inside)[0])


def _box(middle: tuple[float, float], width: float, height: float, angle: float) -> TextBox:
    if width < height:
        width, height, angle = height, width, angle - 90
    # Upright text leans by up to 45 degrees; text along the other axis is read downwards.
    angle = (angle + 45) % 180 - 45
    if angle > 45 and width < _SHORT * height:  # noqa: PLR2004 - half of a right angle
        width, height, angle = height, width, angle - 90
    turn = math.radians(angle)
    along = np.array([math.cos(turn), math.sin(turn)]) * width
    down = np.array([-math.sin(turn), math.cos(turn)]) * height
    return TextBox(np.array(middle) - (along + down) / 2, along, down)
