"""Function `page_text`: what a text recogniser says of each line, to its text."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ortkit import read_metadata
from stagewire.errors import TensorMismatchError
from stagewire.tensor import DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule, find_port, single_file
from worker_cpu.functions.function import Function
from worker_cpu.vision.characters import decode_line, read_characters


class PageTextStage:
    """Reads the lines of each execution."""

    def __init__(
        self, characters: Sequence[str], min_confidence: float, *, tells_confidence: bool
    ) -> None:
        self._characters = characters
        self._min_confidence = min_confidence
        self._tells_confidence = tells_confidence

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """One thread: the calling one."""
        return {"threads": "1"}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a line of one character."""
        return {"class": [np.array([[0, 1]])], "probability": [np.ones((1, 2), np.float32)]}

    def run(self, execution: Execution) -> None:
        """Sends each line that is sure enough and not blank."""
        for classes in execution.items("class"):
            probabilities = execution.receive("probability")
            if probabilities is None:
                raise TensorMismatchError(
                    "port 'probability' ended before 'class'; connect both to the same recogniser"
                )
            text, confidence = decode_line(
                np.asarray(classes)[0], np.asarray(probabilities)[0], self._characters
            )
            execution.check()
            if text.strip() and confidence >= self._min_confidence:
                execution.send("line", text.strip())
                if self._tells_confidence:
                    execution.send("confidence", np.array(confidence, np.float32))
        if execution.receive("probability") is not None:
            raise TensorMismatchError(
                "port 'class' ended before 'probability'; connect both to the same recogniser"
            )

    def release(self) -> None:
        """Holds nothing but memory that goes by itself."""


def _load(order: StageOrder, progress: Progress) -> PageTextStage:
    options = OptionReader(order)
    min_confidence = options.number("min_confidence", 0.5, low=0.0, high=1.0)
    options.finish()
    for port in order.inputs:
        if port.dimensions[0].name or port.dimensions[0].max_extent != 1:
            raise TensorMismatchError(
                f"stage {order.stage_id}: port {port.name!r} of page_text is {port};"
                " its shape must be [1, steps]",
                stage=order.stage_id,
                port=port.name,
            )
    progress("reading the characters of the model")
    characters = read_characters(read_metadata(single_file(order, ".onnx")))
    tells_confidence = find_port(order.outputs, "confidence") is not None
    return PageTextStage(characters, min_confidence, tells_confidence=tells_confidence)


PAGE_TEXT: Final = Function(
    name="page_text",
    inputs=(
        PortRule("class", DataType.INT64, ranks=(2,), is_stream=True),
        PortRule("probability", DataType.FLOAT32, ranks=(2,), is_stream=True),
    ),
    outputs=(
        PortRule("line", DataType.UTF8, is_stream=True),
        PortRule("confidence", DataType.FLOAT32, is_stream=True, is_required=False),
    ),
    load=_load,
    formats=("onnx:fp32", "onnx:fp16", "onnx:a16w8", "onnx:a8w8"),
)
