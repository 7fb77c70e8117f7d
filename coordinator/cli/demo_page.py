"""The demo `page`: an image goes two ways, to its text and to a label, which one answer joins."""

import shlex
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from coordinator.cli.exhibit import Piece
from coordinator.cli.screen import Screen
from coordinator.facts.ids import PortId, StageId
from coordinator.plan.loading import load_plan
from stagewire.client import Output, image
from stagewire.errors import MediaInvalidError
from stagewire.tensor import Value


class Page:
    """Implements `Exhibit`."""

    pipeline = "both"
    first = ("lines", "line")

    def __init__(self, plan_path: Path, picture: Path) -> None:
        self.inputs = read_picture(picture, plan_path)
        self._picture = picture
        self._line_count = 0
        # A line and its confidence come on two outputs, either one first; so do label and share.
        self._waiting: dict[str, deque[Value]] = {}

    def take(self, output: Output) -> Iterable[Piece]:
        """Returns a line once its confidence is known, a label with its share, and the answer."""
        if output.port == "answer":
            yield output.port, str(output.value)
            return
        self._waiting.setdefault(output.port, deque()).append(output.value)
        if (pair := self._pair("lines", "confidences")) is not None:
            self._line_count += 1
            yield "read", f"\n  {_percent(pair[1]):>5}  {pair[0]!s}"
        if (pair := self._pair("label", "probability")) is not None:
            yield "label", f"{pair[0]!s} ({_percent(pair[1])})"

    def conclude(self, screen: Screen) -> None:
        """Says so when there is no text in the image."""
        if not self._line_count:
            screen.line("read: no text; the label alone is what the answer is made of")

    def finish(self, screen: Screen) -> None:
        """Leaves nothing."""

    @property
    def again(self) -> str:
        """Options of `coordinator run` that ask the same again."""
        return f"--input {shlex.quote(f'image=@{self._picture}')}"

    def _pair(self, one: str, other: str) -> tuple[Value, Value] | None:
        ones, others = self._waiting.get(one), self._waiting.get(other)
        return (ones.popleft(), others.popleft()) if ones and others else None


def read_picture(path: Path, plan_path: Path) -> Mapping[str, Value]:
    """Returns the inputs of an image; nothing has been started by then.

    Raises:
        MediaInvalidError: it is no image, or larger than the plan takes.
    """
    pixels = image(path)
    height, width = pixels.shape[:2]
    taken = load_plan(plan_path).plan.stages[StageId("scale")].inputs[PortId("image")].shape
    highest, widest = taken[0].max_extent, taken[1].max_extent
    if height > highest or width > widest:
        raise MediaInvalidError(
            f"{path.name} has {width} x {height} pixels; the plan takes up to {widest} x {highest};"
            f" make it smaller, for example with `magick IN -resize {widest}x{highest} OUT.png`"
        )
    return {"image": pixels}


def _percent(share: Value) -> str:
    return f"{100 * float(np.asarray(share)):.0f} %"
