"""Function `top_label`: the scores of an image classifier to the name of the likeliest class."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from stagewire.errors import FieldInvalidError, FormatUnsupportedError, TensorMismatchError
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule, find_port, single_file
from worker_cpu.functions.function import Function
from worker_cpu.streams import check_streams


class TopLabelStage:
    """Names the class of each set of scores."""

    def __init__(self, names: Sequence[str], *, tells_probability: bool) -> None:
        self._names = names
        self._tells_probability = tells_probability

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """One thread: the calling one."""
        return {"threads": "1"}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns equal scores."""
        return {"logits": [np.zeros((1, len(self._names)), np.float32)]}

    def run(self, execution: Execution) -> None:
        """Sends a name for each set of scores."""
        for item in execution.items("logits"):
            index, probability = likeliest(np.asarray(item)[0])
            execution.send("label", self._names[index])
            if self._tells_probability:
                execution.send("probability", np.array(probability, np.float32))

    def release(self) -> None:
        """Holds nothing but memory that goes by itself."""


def likeliest(logits: Array) -> tuple[int, float]:
    """Returns the class with the highest score and its probability (softmax).

    Raises:
        FieldInvalidError: a score is not a number.
    """
    if not np.isfinite(logits).all():
        raise FieldInvalidError("port 'logits' got a score that is not a number")
    index = int(logits.argmax())
    shares = np.exp(logits.astype(np.float64) - float(logits[index]))
    return index, float(1 / shares.sum())


def _load(order: StageOrder, progress: Progress) -> TopLabelStage:
    OptionReader(order).finish()
    check_streams(order)
    progress("reading the names of the classes")
    names = _read_names(order)
    logits = next(port for port in order.inputs if port.name == "logits")
    if [(item.name, item.max_extent) for item in logits.dimensions] != [("", 1), ("", len(names))]:
        raise TensorMismatchError(
            f"stage {order.stage_id}: input 'logits' is {logits}; its shape must be"
            f" [1, {len(names)}], as there are {len(names)} names",
            stage=order.stage_id,
            port="logits",
        )
    tells_probability = find_port(order.outputs, "probability") is not None
    return TopLabelStage(names, tells_probability=tells_probability)


def _read_names(order: StageOrder) -> list[str]:
    path = single_file(order, ".json")
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(it, str) for it in names):
        raise FormatUnsupportedError(
            f"stage {order.stage_id}: {path.name} is not a JSON list of names",
            stage=order.stage_id,
        )
    return names


TOP_LABEL: Final = Function(
    name="top_label",
    inputs=(PortRule("logits", DataType.FLOAT32, ranks=(2,)),),
    outputs=(
        PortRule("label", DataType.UTF8),
        PortRule("probability", DataType.FLOAT32, is_required=False),
    ),
    load=_load,
    formats=("onnx:fp32", "onnx:fp16", "onnx:a16w8", "onnx:a8w8"),
)
