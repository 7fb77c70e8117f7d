"""Function `resample`: audio of any usual rate to 16 kHz mono.

A polyphase filter with a Kaiser-windowed sinc: flat within 0.001 dB up to 0.88 of the lower Nyquist
frequency, 72 dB down at that frequency and 89 dB from 1.02 of it on (read off the filters of five
rates). A stream of items is one signal: it has no joints.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stagewire.errors import FieldInvalidError, TensorMismatchError
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule
from worker_cpu.functions.function import Function

TARGET_RATE: Final = 16_000
LOWEST_RATE: Final = 4_000
HIGHEST_RATE: Final = 384_000
MOST_PHASES: Final = 1_024
"""Rows of the filter bank; every rate that audio hardware uses needs at most 640."""
_ZERO_CROSSINGS: Final = 48
"""On each side of the filter, at the lower of both rates."""
_KAISER_BETA: Final = 8.6
_ROLL_OFF: Final = 0.945
"""Middle of the transition band, as a part of the lower Nyquist frequency."""


class Resampler:
    """Converts one signal from one rate to another, piece by piece."""

    def __init__(self, source_rate: int, target_rate: int = TARGET_RATE) -> None:
        if not LOWEST_RATE <= source_rate <= HIGHEST_RATE:
            raise FieldInvalidError(
                f"the rate is {source_rate}; it must be from {LOWEST_RATE} to {HIGHEST_RATE}"
            )
        divisor = math.gcd(source_rate, target_rate)
        self._up = target_rate // divisor
        self._down = source_rate // divisor
        if self._up > MOST_PHASES:
            raise FieldInvalidError(
                f"the rate {source_rate} has no simple ratio to {target_rate};"
                " use a usual one, such as 44100 or 48000"
            )
        self._half = math.ceil(_ZERO_CROSSINGS * max(1.0, self._down / self._up))
        self._bank = _filter_bank(self._up, self._down, self._half)
        # The signal is silent before it begins.
        self._kept = np.zeros(self._half - 1, dtype=np.float32)
        self._kept_from = 1 - self._half
        self._received = 0
        self._sent = 0

    def push(self, samples: Array) -> Array:
        """Returns what the next samples complete."""
        self._kept = np.concatenate([self._kept, samples])
        self._received += len(samples)
        # The window of an output reaches `half` samples past its place in the source.
        places = max(self._received - self._half, 0)
        return self._compute(-(-places * self._up // self._down))

    def finish(self) -> Array:
        """Returns the rest of the signal."""
        self._kept = np.concatenate([self._kept, np.zeros(self._half, dtype=np.float32)])
        return self._compute(-(-self._received * self._up // self._down))

    def _compute(self, until: int) -> Array:
        count = max(until - self._sent, 0)
        result = np.empty(count, dtype=np.float32)
        if not count:
            return result
        windows = sliding_window_view(self._kept, 2 * self._half)
        for offset in range(min(self._up, count)):
            # Outputs that are `up` apart share a phase, and are `down` apart in the source.
            place, phase = divmod((self._sent + offset) * self._down, self._up)
            first = place - self._half + 1 - self._kept_from
            part = result[offset :: self._up]
            part[:] = windows[first :: self._down][: len(part)] @ self._bank[phase]
        self._sent = until
        needed_from = self._sent * self._down // self._up - self._half + 1
        dropped = min(max(needed_from - self._kept_from, 0), len(self._kept))
        self._kept = self._kept[dropped:].copy()
        self._kept_from += dropped
        return result


def _filter_bank(up: int, down: int, half: int) -> Array:
    """Returns one filter a phase; row p is for outputs p/up of a sample behind a source sample."""
    cutoff = min(1.0, up / down) * _ROLL_OFF
    times = np.arange(1 - half, half + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1.0 - (times / half) ** 2, 0.0, None)))
    bank = np.sinc(cutoff * times) * window
    # Each phase passes a constant unchanged, so that there is no ripple at the phases' rate.
    filters: Array = (bank / bank.sum(axis=1, keepdims=True)).astype(np.float32)
    return filters


def _checked(samples: Array) -> Array:
    # A recogniser answers nonsense to one such sample, and says nothing.
    if not np.isfinite(samples).all():
        raise FieldInvalidError("port 'audio' got a sample that is not a finite number")
    return samples


def to_mono(audio: Array) -> Array:
    """Returns the mean of the channels of [samples] or [samples, channels]."""
    if audio.ndim == 1:
        return audio
    if not audio.shape[1]:
        raise TensorMismatchError("the audio has no channel")
    mono: Array = audio.mean(axis=1, dtype=np.float32)
    return mono


class ResampleStage:
    """Resamples the audio of each execution as one signal."""

    def __init__(self, order: StageOrder) -> None:
        audio = next(port for port in order.inputs if port.name == "audio")
        answer = next(port for port in order.outputs if port.name == "audio")
        self._most_samples = answer.dimensions[0].max_extent
        self._rank = len(audio.dimensions)
        self._channels = 1
        if self._rank > 1 and not audio.dimensions[1].name:
            self._channels = audio.dimensions[1].max_extent
        self._is_stream = audio.is_stream

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """One thread: the calling one."""
        return {"threads": "1"}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a hundredth of a second of silence at 48 kHz."""
        shape = (480,) if self._rank == 1 else (480, self._channels)
        return {"audio": [np.zeros(shape, np.float32)], "rate": [np.array(48_000, np.int32)]}

    def run(self, execution: Execution) -> None:
        """Sends what each item completes; the end of the signal goes out with its last item."""
        rate = execution.receive("rate")
        if rate is None:
            raise TensorMismatchError("port 'rate' ended without an item", port="rate")
        source_rate = int(np.asarray(rate))
        resampler = None if source_rate == TARGET_RATE else Resampler(source_rate)
        if not self._is_stream:
            audio = execution.receive("audio")
            if audio is None:
                raise TensorMismatchError("port 'audio' ended without an item", port="audio")
            mono = _checked(to_mono(np.asarray(audio)))
            if resampler:
                mono = np.concatenate([resampler.push(mono), resampler.finish()])
            self._check_length(mono)
            execution.send("audio", mono)
            return
        for item in execution.items("audio"):
            mono = _checked(to_mono(np.asarray(item)))
            _send_some(execution, resampler.push(mono) if resampler else mono)
        if resampler:
            _send_some(execution, resampler.finish())

    def _check_length(self, mono: Array) -> None:
        if len(mono) > self._most_samples:
            raise FieldInvalidError(
                f"the audio is {len(mono) / TARGET_RATE:.1f} s long, the plan takes"
                f" {self._most_samples / TARGET_RATE:.1f} s; send less",
                seconds=round(len(mono) / TARGET_RATE, 1),
            )

    def release(self) -> None:
        """Holds nothing."""


def _send_some(execution: Execution, audio: Array) -> None:
    if audio.size:
        execution.send("audio", audio)


def _load(order: StageOrder, progress: Progress) -> ResampleStage:
    OptionReader(order).finish()
    streams = {port.is_stream for port in (*order.inputs, *order.outputs) if port.name == "audio"}
    if len(streams) != 1:
        raise TensorMismatchError(
            f"stage {order.stage_id}: input and output 'audio' must both be streams, or neither"
        )
    progress("ready")
    return ResampleStage(order)


RESAMPLE: Final = Function(
    name="resample",
    inputs=(
        PortRule("audio", DataType.FLOAT32, ranks=(1, 2)),
        PortRule("rate", DataType.INT32, is_stream=False),
    ),
    outputs=(PortRule("audio", DataType.FLOAT32, ranks=(1,)),),
    load=_load,
)
