"""Executor `function`: the registry of functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from stagewire.errors import CapabilityMissingError, LoadFailedError
from stagewire.worker.child_process import children_can_start
from stagewire.worker.child_stage import load_in_child
from stagewire.worker.executor import Capability, LoadedStage, Progress, StageOrder
from stagewire.worker.order import OptionReader, check_format, check_ports
from worker_cpu.functions.compose_prompt import COMPOSE_PROMPT
from worker_cpu.functions.function import Function
from worker_cpu.functions.page_boxes import PAGE_BOXES
from worker_cpu.functions.page_prepare import PAGE_PREPARE
from worker_cpu.functions.page_text import PAGE_TEXT
from worker_cpu.functions.photo_prepare import PHOTO_PREPARE
from worker_cpu.functions.resample import RESAMPLE
from worker_cpu.functions.segment_voice import SEGMENT_VOICE
from worker_cpu.functions.split_sentences import SPLIT_SENTENCES
from worker_cpu.functions.top_label import TOP_LABEL

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for function in (
        COMPOSE_PROMPT,
        PAGE_BOXES,
        PAGE_PREPARE,
        PAGE_TEXT,
        PHOTO_PREPARE,
        RESAMPLE,
        SEGMENT_VOICE,
        SPLIT_SENTENCES,
        TOP_LABEL,
    )
}

_IN_CHILD: Final = "in_child"
"""Option of every function."""


class FunctionExecutor:
    """Runs the functions of this worker."""

    name = "function"

    def describe(self) -> Sequence[Capability]:
        """Lists the functions."""
        formats = sorted({item for function in FUNCTIONS.values() for item in function.formats})
        return [
            Capability(self.name, "cpu", formats=tuple(formats), functions=tuple(sorted(FUNCTIONS)))
        ]

    def load(self, order: StageOrder, progress: Progress) -> LoadedStage:
        """Checks the order against the function and makes a stage of it, here or in a child."""
        function = FUNCTIONS.get(order.function)
        if function is None:
            raise CapabilityMissingError(
                f"stage {order.stage_id}: this worker has no function {order.function!r};"
                f" it has {', '.join(sorted(FUNCTIONS))}",
                stage=order.stage_id,
            )
        in_child = OptionReader(order).flag(
            _IN_CHILD, default=function.in_child and children_can_start()
        )
        options = {name: value for name, value in order.options.items() if name != _IN_CHILD}
        order = replace(order, options=options)
        check_ports(order, function.inputs, function.outputs)
        if function.formats:
            check_format(order, function.formats)
        elif order.files:
            raise LoadFailedError(
                f"stage {order.stage_id}: function {function.name} takes no artifact; remove it",
                stage=order.stage_id,
            )
        if in_child:
            return load_in_child("worker_cpu.functions.executor:load_function", order, progress)
        return load_function(order, progress)

    def close(self) -> None:
        """Holds nothing of its own."""


def load_function(order: StageOrder, progress: Progress) -> LoadedStage:
    """Loads the function of an order that was checked, in this process."""
    return FUNCTIONS[order.function].load(order, progress)
