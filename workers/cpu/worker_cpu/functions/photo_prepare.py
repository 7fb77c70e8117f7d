"""Function `photo_prepare`: the middle of a photo as an image classifier takes it."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from stagewire.errors import TensorMismatchError
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule
from worker_cpu.functions.function import Function
from worker_cpu.functions.images import check_channels
from worker_cpu.streams import check_streams
from worker_cpu.vision.opencv import OpenCv, check_image


class PhotoPrepareStage:
    """Cuts out, scales and normalises each photo."""

    def __init__(
        self, opencv: OpenCv, side: int, part: float, offset: float, divisor: float
    ) -> None:
        self._opencv = opencv
        self._side = side
        self._part = part
        self._offset = offset
        self._divisor = divisor

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from OpenCV."""
        return self._opencv.thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a small grey image."""
        return {"image": [np.full((24, 32, 3), 127, np.uint8)]}

    def run(self, execution: Execution) -> None:
        """Sends the pixels of each photo."""
        from worker_cpu.vision import pixels

        for item in execution.items("image"):
            self._opencv.claim_threads()
            image: Array = np.asarray(item)
            check_image(image)
            execution.check()
            square = pixels.resized(middle_square(image, self._part), self._side, self._side)
            execution.send("pixels", pixels.normalised(square, self._offset, self._divisor))

    def release(self) -> None:
        """Holds nothing."""


def middle_square(image: Array, part: float) -> Array:
    """Returns the square in the middle whose side is a part of the image's shorter one."""
    height, width = image.shape[:2]
    side = max(1, round(min(height, width) * part))
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def _load(order: StageOrder, progress: Progress) -> PhotoPrepareStage:
    options = OptionReader(order)
    part = options.number("part", 0.875, low=0.1, high=1.0)
    offset = options.number("offset", 127.0, low=-1_000.0, high=1_000.0)
    divisor = options.number("divisor", 128.0, low=0.001, high=1_000.0)
    options.finish()
    check_streams(order)
    check_channels(order)
    pixels = next(port for port in order.outputs if port.name == "pixels")
    height, width = pixels.dimensions[2:]
    if height != width or height.name:
        raise TensorMismatchError(
            f"stage {order.stage_id}: output 'pixels' is {pixels};"
            " its last two extents must be one number, such as 224",
            stage=order.stage_id,
            port="pixels",
        )
    progress("importing OpenCV")
    return PhotoPrepareStage(OpenCv(order.thread_count), height.max_extent, part, offset, divisor)


PHOTO_PREPARE: Final = Function(
    name="photo_prepare",
    inputs=(PortRule("image", DataType.UINT8, ranks=(3,)),),
    outputs=(PortRule("pixels", DataType.FLOAT32, ranks=(4,)),),
    load=_load,
)
