"""Function `page_boxes`: a page and the map of a text detector to lines, in reading order."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.ports import Dimension
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule
from worker_cpu.functions.function import Function
from worker_cpu.functions.images import CHANNELS, IMAGE_RULE, check_channels
from worker_cpu.streams import receive_one
from worker_cpu.vision.opencv import OpenCv, check_image
from worker_cpu.vision.reading_order import reading_order
from worker_cpu.vision.text_box import TextBox

if TYPE_CHECKING:
    from worker_cpu.vision.text_boxes import BoxSettings

_HALF: Final = 127.5


class PageBoxesStage:
    """Finds the lines of each page and cuts them out."""

    def __init__(self, opencv: OpenCv, settings: "BoxSettings", order: StageOrder) -> None:
        crop = next(port for port in order.outputs if port.name == "crop")
        self._opencv = opencv
        self._settings = settings
        self._height = crop.dimensions[2].max_extent
        self._width: Dimension = crop.dimensions[3]

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from OpenCV."""
        return self._opencv.thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a grey page with one line on it."""
        probabilities = np.zeros((1, 1, 32, 64), np.float32)
        probabilities[..., 12:20, 8:56] = 1
        return {
            "image": [np.full((32, 64, 3), 200, np.uint8)],
            "map": [probabilities],
            "area": [np.array([0, 0, 64, 32], np.int32)],
        }

    def run(self, execution: Execution) -> None:
        """Sends each line as soon as it is cut out."""
        from worker_cpu.vision.line_images import line_image

        self._opencv.claim_threads()
        area: Array = np.asarray(receive_one(execution, "area"))
        probabilities: Array = np.asarray(receive_one(execution, "map"))[0, 0]
        image: Array = np.asarray(receive_one(execution, "image"))
        check_image(image)
        execution.check()
        boxes = self._boxes(probabilities, area, image)
        for index in reading_order(boxes):
            line = line_image(image, boxes[index], self._height, self._width.max_extent)
            execution.send("crop", self._crop(line))

    def _boxes(self, probabilities: Array, area: Array, image: Array) -> list[TextBox]:
        from worker_cpu.vision.text_boxes import find_boxes

        left, top, width, height = (int(extent) for extent in area)
        rows, columns = probabilities.shape
        if (
            min(left, top, width - 1, height - 1) < 0
            or left + width > columns
            or top + height > rows
        ):
            raise FieldInvalidError(
                f"area {area.tolist()} does not lie in the map of {columns} by {rows} pixels;"
                " connect ports 'area' and 'map' to the same page_prepare"
            )
        if not np.isfinite(probabilities).all():
            raise FieldInvalidError("port 'map' got a probability that is not a number")
        factors = np.array([image.shape[1] / width, image.shape[0] / height])
        return [
            box.moved(np.array([-left, -top]), factors)
            for box in find_boxes(probabilities, self._settings)
        ]

    def _crop(self, line: Array) -> Array:
        from worker_cpu.vision import pixels

        crop = pixels.normalised(line, _HALF, _HALF)
        if self._width.name:
            return crop
        filled = np.zeros((1, CHANNELS, self._height, self._width.max_extent), np.float32)
        filled[..., : crop.shape[3]] = crop
        return filled

    def release(self) -> None:
        """Holds nothing."""


def _load(order: StageOrder, progress: Progress) -> PageBoxesStage:
    options = OptionReader(order)
    threshold = options.number("threshold", 0.3, low=0.05, high=0.95)
    box_threshold = options.number("box_threshold", 0.5, low=0.05, high=0.95)
    growth = options.number("growth", 1.6, low=0.5, high=4.0)
    most_lines = options.integer("most_lines", 1_000, low=1, high=10_000)
    options.finish()
    check_channels(order)
    _check_shapes(order)
    progress("importing OpenCV")
    opencv = OpenCv(order.thread_count)
    from worker_cpu.vision.text_boxes import BoxSettings

    settings = BoxSettings(threshold, box_threshold, growth, most_lines)
    return PageBoxesStage(opencv, settings, order)


def _check_shapes(order: StageOrder) -> None:
    ports = {port.name: port for port in (*order.inputs, *order.outputs)}
    problems = {
        "map": [ports["map"].dimensions[axis] != Dimension("", 1) for axis in (0, 1)],
        "area": [ports["area"].dimensions[0] != Dimension("", 4)],
        "crop": [bool(ports["crop"].dimensions[2].name)],
    }
    wanted = {
        "map": "[1, 1, height, width]",
        "area": "[4]",
        "crop": "[1, 3, a fixed height, width]",
    }
    for name, is_wrong in problems.items():
        if any(is_wrong):
            raise TensorMismatchError(
                f"stage {order.stage_id}: port {name!r} of page_boxes is {ports[name]};"
                f" its shape must be {wanted[name]}",
                stage=order.stage_id,
                port=name,
            )


PAGE_BOXES: Final = Function(
    name="page_boxes",
    inputs=(
        IMAGE_RULE,
        PortRule("area", DataType.INT32, ranks=(1,), is_stream=False),
        PortRule("map", DataType.FLOAT32, ranks=(4,), is_stream=False),
    ),
    outputs=(PortRule("crop", DataType.FLOAT32, ranks=(4,), is_stream=True),),
    load=_load,
)
