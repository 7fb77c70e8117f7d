"""Function `compose_prompt`: lines of text and a label to one prompt for a language model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.tensor import DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule, find_port
from worker_cpu.functions.function import Function

_PLACE: Final = re.compile(r"\{(\w+)\}")
_PLACES: Final = {"line": "lines", "label": "label"}
"""Input to the word that stands for it in a template."""


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """How a prompt is put together."""

    template: str
    max_characters: int
    """Most characters of all lines together; what is behind them is left out."""
    without_lines: str
    """Stands where no line came."""


class ComposePromptStage:
    """Puts one prompt together in each execution."""

    def __init__(self, settings: PromptSettings, order: StageOrder) -> None:
        self._settings = settings
        self._inputs = [port.name for port in order.inputs]
        self._sends_nothing = any(port.is_stream for port in order.outputs)

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """One thread: the calling one."""
        return {"threads": "1"}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a short text for each input."""
        return {name: ["one"] for name in self._inputs}

    def run(self, execution: Execution) -> None:
        """Waits for all texts; without any there is no prompt."""
        texts = {name: "\n".join(self._texts(execution, name)) for name in self._inputs}
        if any(texts.values()):
            execution.send("prompt", compose(self._settings, texts))
        elif not self._sends_nothing:
            execution.send("prompt", "")

    def _texts(self, execution: Execution, name: str) -> Iterator[str]:
        left = self._settings.max_characters
        # What is left out is received all the same: the stage before waits until it is taken.
        for item in execution.items(name):
            text = str(item).strip()[:left]
            left -= min(len(text) + 1, left)
            if text:
                yield text

    def release(self) -> None:
        """Holds nothing."""


def compose(settings: PromptSettings, texts: Mapping[str, str]) -> str:
    """Returns the template with its places filled; what is filled in is not looked at again."""
    values = {_PLACES[name]: text for name, text in texts.items()}
    if "lines" in values:
        values["lines"] = values["lines"] or settings.without_lines
    return _PLACE.sub(lambda match: values[match[1]], settings.template)


def _load(order: StageOrder, progress: Progress) -> ComposePromptStage:
    options = OptionReader(order)
    places = [_PLACES[name] for name in _PLACES if find_port(order.inputs, name)]
    settings = PromptSettings(
        template=options.text("template", "\n".join(f"{{{place}}}" for place in places)),
        max_characters=options.integer("max_characters", 4_000, low=1, high=1_000_000),
        without_lines=options.text("without_lines", "(no text)"),
    )
    options.finish()
    if not places:
        raise TensorMismatchError(
            f"stage {order.stage_id}: compose_prompt needs the input 'line' or 'label'",
            stage=order.stage_id,
        )
    used = set(_PLACE.findall(settings.template))
    if used != set(places):
        raise FieldInvalidError(
            f"stage {order.stage_id}: option 'template' has places for"
            f" {', '.join(sorted(used)) or 'nothing'}; its inputs fill {', '.join(sorted(places))}",
            stage=order.stage_id,
            option="template",
        )
    progress("ready")
    return ComposePromptStage(settings, order)


COMPOSE_PROMPT: Final = Function(
    name="compose_prompt",
    inputs=(
        PortRule("line", DataType.UTF8, is_required=False),
        PortRule("label", DataType.UTF8, is_required=False),
    ),
    outputs=(PortRule("prompt", DataType.UTF8),),
    load=_load,
)
