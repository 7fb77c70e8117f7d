"""Function `page_prepare`: an image of a page as a text detector takes it.

The image keeps its proportions: it is scaled, and lies in the middle of a canvas whose sides are
multiples of 32, as the detector wants them. `area` says where. Output `image`, which a plan may
leave out, is the image as it came, for the stages that need it as well: an input of a pipeline goes
to one port, an output to any number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.errors import TensorMismatchError
from stagewire.ports import Dimension
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule, find_port
from worker_cpu.functions.function import Function
from worker_cpu.functions.images import IMAGE_RULE, check_channels
from worker_cpu.streams import receive_one
from worker_cpu.vision.opencv import OpenCv, check_image

STEP: Final = 32
"""Sides of a canvas are multiples of it."""
_HALF: Final = 127.5


@dataclass(frozen=True, slots=True)
class CanvasSettings:
    """How large a canvas may be."""

    short_side: int
    """A smaller image is enlarged until its shorter side has this many pixels."""
    most_pixels: int
    """Most pixels of the scaled image."""
    height: Dimension
    width: Dimension
    """Extents of the port; a canvas with fixed ones always has them."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where a scaled image lies on a canvas."""

    left: int
    top: int
    image_width: int
    image_height: int
    width: int
    height: int


def lay_out(image_width: int, image_height: int, settings: CanvasSettings) -> Canvas:
    """Returns where an image goes and how large it becomes."""
    most_width, most_height = (
        extent.max_extent - extent.max_extent % STEP for extent in (settings.width, settings.height)
    )
    scale = min(
        max(1.0, settings.short_side / min(image_width, image_height)),
        math.sqrt(settings.most_pixels / (image_width * image_height)),
        most_width / image_width,
        most_height / image_height,
    )
    inner = (
        min(max(1, round(image_width * scale)), most_width),
        min(max(1, round(image_height * scale)), most_height),
    )
    width, height = (
        -(-extent // STEP) * STEP if dimension.name else dimension.max_extent
        for extent, dimension in zip(inner, (settings.width, settings.height), strict=True)
    )
    return Canvas((width - inner[0]) // 2, (height - inner[1]) // 2, *inner, width, height)


class PagePrepareStage:
    """Scales each image onto a canvas."""

    def __init__(self, opencv: OpenCv, settings: CanvasSettings, *, passes_image: bool) -> None:
        self._opencv = opencv
        self._settings = settings
        self._passes_image = passes_image

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from OpenCV."""
        return self._opencv.thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a small grey image."""
        return {"image": [np.full((24, 64, 3), 200, np.uint8)]}

    def run(self, execution: Execution) -> None:
        """Sends the canvas and where the image lies on it."""
        from worker_cpu.vision import pixels

        self._opencv.claim_threads()
        image: Array = np.asarray(receive_one(execution, "image"))
        check_image(image)
        layout = lay_out(image.shape[1], image.shape[0], self._settings)
        if self._passes_image:
            execution.send("image", image)
        execution.check()
        inner = pixels.resized(image, layout.image_width, layout.image_height)
        canvas = pixels.bordered(inner, layout.left, layout.top, layout.width, layout.height)
        area = (layout.left, layout.top, layout.image_width, layout.image_height)
        execution.send("area", np.array(area, np.int32))
        execution.send("canvas", pixels.normalised(canvas, _HALF, _HALF))

    def release(self) -> None:
        """Holds nothing."""


def _load(order: StageOrder, progress: Progress) -> PagePrepareStage:
    options = OptionReader(order)
    canvas = next(port for port in order.outputs if port.name == "canvas")
    settings = CanvasSettings(
        short_side=options.integer("short_side", 736, low=STEP, high=4_096),
        most_pixels=options.integer("most_pixels", 1_843_200, low=STEP * STEP, high=1 << 24),
        height=canvas.dimensions[2],
        width=canvas.dimensions[3],
    )
    options.finish()
    check_channels(order)
    for dimension in (settings.height, settings.width):
        if dimension.max_extent < STEP or (not dimension.name and dimension.max_extent % STEP):
            raise TensorMismatchError(
                f"stage {order.stage_id}: a side of output 'canvas' is {dimension};"
                f" it must be a multiple of {STEP}, or vary up to {STEP} at least",
                stage=order.stage_id,
                port="canvas",
            )
    progress("importing OpenCV")
    passes_image = find_port(order.outputs, "image") is not None
    return PagePrepareStage(OpenCv(order.thread_count), settings, passes_image=passes_image)


PAGE_PREPARE: Final = Function(
    name="page_prepare",
    inputs=(IMAGE_RULE,),
    outputs=(
        PortRule("canvas", DataType.FLOAT32, ranks=(4,), is_stream=False),
        PortRule("area", DataType.INT32, ranks=(1,), is_stream=False),
        PortRule("image", DataType.UINT8, ranks=(3,), is_stream=False, is_required=False),
    ),
    load=_load,
)
