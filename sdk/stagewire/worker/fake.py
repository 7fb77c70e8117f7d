"""The fake that ships: an executor without a model, for tests and for `--fake`.

It answers every plan: an output takes over the items of the first input of its own type, or gets a
small item of its own. Under `options.script` it does harm on purpose, to see what others make of
it:

    script: [{on: item, after: 3, do: crash}, {on: load, do: slow, seconds: 2}]

`on` is `load`, `start`, `item` (default) or `end`; `after` counts items. `do` is one of `crash`,
`exit`, `hang`, `hang_gil`, `slow`, `nan`, `wrong_shape`, `wrong_type`, `leak`, `raise`, `refuse`,
`flood` (of stderr), `child` (starts a process that sleeps).

Under `options.stamp` it measures instead: into the first two zeros of each int64 item it writes the
nanoseconds of the monotonic clock, which all processes of a machine share, when it received the
item and when it sent it on.

Run as `python -I -m stagewire.worker.fake`, it is a whole worker that hosts every executor's name.
"""

from stagewire.worker.lifeline import bind_to_parent

if __name__ == "__main__":
    bind_to_parent()

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from stagewire.errors import FieldInvalidError, LoadFailedError, StageFaultError
from stagewire.tensor import Array, Bfloat16Bits, DataType, Value, data_type_of
from stagewire.worker.executor import (
    Capability,
    Execution,
    LoadedStage,
    Port,
    Progress,
    StageOrder,
)

NAMES: Final = ("fake", "function", "onnx", "whisper", "llamacpp", "speech")
"""Executors whose place the fake takes in `--fake`."""
FORMATS: Final = ("onnx:fp32", "onnx:fp16", "ct2:fp16", "gguf:q4_1", "fake:bytes")
_LONG_SECONDS: Final = 3600
_ONE_AS_BFLOAT16: Final = 0x3F80


@dataclass(frozen=True, slots=True)
class Deed:
    """One line of a fault script."""

    do: str
    on: str = "item"
    after: int = 0
    seconds: float = 1.0
    size_bytes: int = 1 << 20

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "Deed":
        """Reads one line (JSON values, hence Any).

        Raises:
            FieldInvalidError: it has an unknown field or deed.
        """
        try:
            deed = cls(**line)
        except TypeError:
            raise FieldInvalidError(f"a line of a fault script cannot be read: {line}") from None
        if deed.do not in _DEEDS or deed.on not in ("load", "start", "item", "end"):
            raise FieldInvalidError(f"a line of a fault script is unknown: {line}")
        return deed


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
        functions = ("resample", "segment_voice", "split_sentences", "echo")
        return (
            Capability(
                self._name,
                "cpu",
                formats=FORMATS,
                functions=functions if self._name == "function" else (),
                library_version="fake",
            ),
        )

    def load(self, order: StageOrder, progress: Progress) -> LoadedStage:
        """Loads nothing, unless the script says so."""
        script = tuple(map(Deed.from_json, order.options.get("script", ())))
        progress("pretending")
        stage = FakeStage(order, script, is_stamping=bool(order.options.get("stamp")))
        for deed in script:
            if deed.on == "load":
                stage.perform(deed)
        return stage

    def close(self) -> None:
        """Holds nothing."""


@dataclass(slots=True)
class FakeStage:
    """A stage that computes nothing."""

    order: StageOrder
    script: tuple[Deed, ...]
    is_stamping: bool = False
    _leaked: list[Array] = field(default_factory=list)
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
                spoil = self._perform_all("item", is_rehearsal)
                for output in streams:
                    self._send(execution, output, [value], spoil)
        spoil = self._perform_all("end", is_rehearsal) or self._spoiling()
        for output in self.order.outputs:
            if not output.is_stream:
                self._send(execution, output, received, spoil)

    def release(self) -> None:
        """Forgets what it leaked."""
        self._leaked.clear()

    def perform(self, deed: Deed) -> None:
        """Does one line of the script that changes no item."""
        _DEEDS[deed.do](self, deed)

    def leak(self, deed: Deed) -> None:
        """Keeps memory that it touched."""
        self._leaked.append(np.ones(deed.size_bytes, np.uint8))

    def _spoiling(self) -> str:
        """Returns how the present item is spoiled."""
        return next(
            (
                deed.do
                for deed in self.script
                if deed.do in _SPOILS and deed.on == "item" and self._item_count > deed.after
            ),
            "",
        )

    def _perform_all(self, moment: str, is_rehearsal: bool) -> str:
        if is_rehearsal:
            return ""
        for deed in self.script:
            if deed.on == moment and deed.do not in _SPOILS:
                # Every item after the first ones, or harm that heals itself would be missed.
                if moment == "item" and self._item_count <= deed.after:
                    continue
                self.perform(deed)
        return self._spoiling()

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
    if port.data_type is DataType.BFLOAT16:
        return np.full(shape, _ONE_AS_BFLOAT16, np.uint16).view(Bfloat16Bits)
    return np.ones(shape, port.data_type.spelling)


def _fits(port: Port, value: Value) -> bool:
    shape = value.shape if isinstance(value, np.ndarray) else ()
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
        return value[np.newaxis]
    if isinstance(value, np.ndarray) and spoil == "nan" and value.dtype.kind == "f":
        return np.full_like(value, np.nan)
    return value


def _hang_with_gil(_: FakeStage, deed: Deed) -> None:
    # PyDLL keeps the GIL during the call, so that no thread of Python runs meanwhile.
    ctypes.PyDLL(None).sleep(int(deed.seconds) or _LONG_SECONDS)


def _raise(_: FakeStage, __: Deed) -> None:
    # No failure of the table: what an executor's library might raise, with a path in its text.
    raise RuntimeError("the library failed in /somewhere/secret.py")


def _refuse(stage: FakeStage, deed: Deed) -> None:
    if deed.on == "load":
        raise LoadFailedError(f"stage {stage.order.stage_id!r} refuses to be loaded")
    raise StageFaultError(f"stage {stage.order.stage_id!r} refuses its input")


def _flood(_: FakeStage, deed: Deed) -> None:
    os.write(2, b"x" * deed.size_bytes)


def _start_child(_: FakeStage, deed: Deed) -> None:
    # As every child of a worker must, it binds itself to the worker first of all.
    code = (
        "import time; from stagewire.worker.lifeline_linux import die_with_parent;"
        f" die_with_parent({os.getpid()}); time.sleep({deed.seconds})"
    )
    subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.DEVNULL)


def _sleep(_: FakeStage, deed: Deed) -> None:
    time.sleep(deed.seconds)


_SPOILS: Final = ("nan", "wrong_shape", "wrong_type")
_DEEDS: Final[dict[str, Any]] = {
    "crash": lambda _, __: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda _, __: os._exit(0),
    "hang": lambda _, deed: time.sleep(deed.seconds if deed.seconds > 1 else _LONG_SECONDS),
    "hang_gil": _hang_with_gil,
    "slow": _sleep,
    "leak": FakeStage.leak,
    "raise": _raise,
    "refuse": _refuse,
    "flood": _flood,
    "child": _start_child,
    **dict.fromkeys(_SPOILS, lambda _, __: None),
}


if __name__ == "__main__":
    from stagewire.worker.host import main

    main([FakeExecutor(name) for name in NAMES])
