"""The fake that ships: an executor without a model, for tests and for `--fake`.

It answers every plan: an output takes over the items of the first input of its own type, or gets a
small item of its own. Under `options.script` it does harm on purpose, to see what others make of
it:

    script: [{on: item, after: 3, do: crash}, {on: load, do: slow, seconds: 2}]

`on` is `load`, `start`, `item` (default) or `end`; `after` counts items, and `value` picks those
that begin with it. `do` is one of `crash`, `segfault`, `exit`, `hang`, `hang_gil`, `slow`, `nan`,
`spin` (in Python), `wrong_shape`, `wrong_type`, `leak`, `map` (its artifact), `raise`, `refuse`,
`flood` (of stderr), `child` (starts a process that sleeps).

Under `options.stamp` it measures instead: into the first two zeros of each int64 item it writes the
nanoseconds of the monotonic clock, which all processes of a machine share, when it received the
item and when it sent it on.

Under `options.count_calls` every output gets one item that says how many requests of its session
the stage has had, with this one; 0 for a request without a session.

Under `options.in_child` all that happens in a child of the worker.

Run as `python -I -m stagewire.worker.fake`, it is a whole worker that hosts every executor's name.
"""

from stagewire.worker.lifeline import bind_to_parent

if __name__ == "__main__":
    bind_to_parent()

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from stagewire.bits import STORAGE, array_of, shape_of
from stagewire.tensor import Array, DataType, Value, data_type_of
from stagewire.worker.child_stage import load_in_child
from stagewire.worker.executor import (
    Capability,
    Execution,
    LoadedStage,
    Port,
    Progress,
    StageOrder,
)
from stagewire.worker.fake_script import HARM, SPOILS, Deed

NAMES: Final = ("fake", "function", "onnx", "whisper", "llamacpp", "speech")
"""Executors whose place the fake takes in `--fake`."""
FORMATS: Final = ("onnx:fp32", "onnx:fp16", "ct2:fp16", "gguf:q4_1", "fake:bytes")
FUNCTIONS: Final = (
    *("resample", "segment_voice", "split_sentences", "echo"),
    *("page_prepare", "page_boxes", "page_text", "photo_prepare", "top_label", "compose_prompt"),
)


class FakeExecutor:
    """Hosts stages without models under the name of any executor."""

    def __init__(self, name: str = "fake") -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Name in plans."""
        return self._name

    def describe(self) -> Sequence[Capability]:
        """Says that everything runs on the CPU."""
        return (
            Capability(
                self._name,
                "cpu",
                formats=FORMATS,
                functions=FUNCTIONS if self._name == "function" else (),
                library_version="fake",
            ),
        )

    def load(self, order: StageOrder, progress: Progress) -> LoadedStage:
        """Loads nothing, unless the script says so; with `options.in_child` in a process apart."""
        if order.options.get("in_child"):
            return load_in_child("stagewire.worker.fake:load_fake", order, progress)
        return load_fake(order, progress)

    def close(self) -> None:
        """Holds nothing."""


def load_fake(order: StageOrder, progress: Progress) -> "FakeStage":
    """Loads in this process."""
    script = tuple(map(Deed.from_json, order.options.get("script", ())))
    progress("pretending")
    stage = FakeStage(
        order,
        script,
        is_stamping=bool(order.options.get("stamp")),
        is_counting=bool(order.options.get("count_calls")),
    )
    for deed in script:
        if deed.on == "load":
            stage.perform(deed)
    return stage


@dataclass(slots=True)
class FakeStage:
    """A stage that computes nothing."""

    is_pretended: ClassVar[bool] = True
    """What its proof says, so that nobody takes it for one."""
    order: StageOrder
    script: tuple[Deed, ...]
    is_stamping: bool = False
    is_counting: bool = False
    _kept: list[Array] = field(default_factory=list)
    _item_count: int = 0

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Says how many threads it would use."""
        return {"fake": str(self.order.thread_count)}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns one small item for each input."""
        return {port.name: [small_item(port)] for port in self.order.inputs}

    def run(self, execution: Execution) -> None:
        """Passes items on, and does what the script says."""
        is_rehearsal = execution.remaining_seconds == float("inf")
        self._perform_all("start", is_rehearsal)
        received: list[Value] = []
        streams = [port for port in self.order.outputs if port.is_stream]
        for port in self.order.inputs:
            for item in execution.items(port.name):
                value = _stamped(item) if self.is_stamping else item
                received.append(value)
                self._item_count += not is_rehearsal
                spoil = self._perform_all("item", is_rehearsal, value)
                if self.is_counting:
                    continue
                for output in streams:
                    self._send(execution, output, [value], spoil)
        spoil = self._perform_all("end", is_rehearsal) or self._spoiling()
        if self.is_counting:
            self._send_count(execution)
            return
        for output in self.order.outputs:
            if not output.is_stream:
                self._send(execution, output, received, spoil)

    def _send_count(self, execution: Execution) -> None:
        session = execution.session
        count = 0
        if session is not None:
            count = (session.state if isinstance(session.state, int) else 0) + 1
            session.keep(count, size_bytes=count.bit_length())
        for port in self.order.outputs:
            item = small_item(port)
            if isinstance(item, str):
                execution.send(port.name, str(count))
            else:
                execution.send(port.name, np.full_like(item, count))

    def release(self) -> None:
        """Forgets what it leaked and mapped."""
        self._kept.clear()

    def perform(self, deed: Deed) -> None:
        """Does one line of the script that changes no item."""
        if deed.do == "leak":
            # Touched, or it would be no memory yet.
            self._kept.append(np.ones(deed.size_bytes, np.uint8))
        elif deed.do == "map":
            for path in self.order.files.values():
                pages = np.memmap(path, np.uint8, "r")
                pages.max()
                self._kept.append(pages)
        else:
            HARM[deed.do](deed, self.order.stage_id)

    def _spoiling(self, item: Value | None = None) -> str:
        """Returns how the present item is spoiled."""
        return next(
            (
                deed.do
                for deed in self.script
                if deed.do in SPOILS and deed.is_due("item", self._item_count, item)
            ),
            "",
        )

    def _perform_all(self, moment: str, is_rehearsal: bool, item: Value | None = None) -> str:
        if is_rehearsal:
            return ""
        for deed in self.script:
            if deed.do not in SPOILS and deed.is_due(moment, self._item_count, item):
                self.perform(deed)
        return self._spoiling(item)

    @staticmethod
    def _send(execution: Execution, port: Port, values: Sequence[Value], spoil: str) -> None:
        same = [value for value in values if data_type_of(value) is port.data_type]
        value = same[0] if same else small_item(port)
        if not _fits(port, value):
            value = small_item(port)
        execution.send(port.name, _spoiled(value, spoil))


def small_item(port: Port) -> Value:
    """Returns a small item that a port accepts."""
    if port.data_type.is_string and not port.dimensions:
        return "fake." if port.data_type is DataType.UTF8 else b"fake"
    shape = [min(item.max_extent, 4) if item.name else item.max_extent for item in port.dimensions]
    if port.data_type.is_string:
        return np.full(shape, "fake" if port.data_type is DataType.UTF8 else b"fake", object)
    if port.data_type in STORAGE:
        return array_of(port.data_type, [1], tuple(shape))
    return np.ones(shape, port.data_type.spelling)


def _fits(port: Port, value: Value) -> bool:
    shape = shape_of(value) if isinstance(value, np.ndarray) else ()
    return len(shape) == len(port.dimensions) and all(
        extent <= rule.max_extent and (rule.name or extent == rule.max_extent)
        for extent, rule in zip(shape, port.dimensions, strict=True)
    )


def _stamped(value: Value) -> Value:
    received_at = time.monotonic_ns()
    stamps = np.array(value, np.int64)
    free = np.flatnonzero(stamps == 0)[:2]
    stamps[free] = (received_at, time.monotonic_ns())[: len(free)]
    return stamps


def _spoiled(value: Value, spoil: str) -> Value:
    if spoil == "wrong_type":
        return np.zeros((1, 1, 1), np.float64)
    if isinstance(value, np.ndarray) and spoil == "wrong_shape":
        return np.asarray(value)[np.newaxis]
    if isinstance(value, np.ndarray) and spoil == "nan" and value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    return value


if __name__ == "__main__":
    from stagewire.worker.host import main

    main([FakeExecutor(name) for name in NAMES])
