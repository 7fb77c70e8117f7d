"""The resampler: what it passes, what it stops, and that pieces make no difference."""

import dataclasses

import numpy as np
import pytest

from stagewire.errors import FieldInvalidError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.local_execution import LocalExecution
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.functions.resample import Resampler, to_mono

pytestmark = pytest.mark.unit

AUDIO = (Dimension("samples", 480_000),)
USUAL_RATES = [8_000, 11_025, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 192_000]


def tone(rate: int, hertz: float, seconds: float = 1.0) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate).astype(np.float32)


def convert(rate: int, signal: np.ndarray) -> np.ndarray:
    resampler = Resampler(rate)
    return np.concatenate([resampler.push(signal), resampler.finish()])


def middle(signal: np.ndarray) -> np.ndarray:
    return signal[len(signal) // 4 : -len(signal) // 4]


@pytest.mark.parametrize("rate", USUAL_RATES)
def test_a_tone_comes_out_as_the_same_tone(rate):
    converted = convert(rate, tone(rate, 1_000))
    assert len(converted) == 16_000
    error = middle(converted) - middle(tone(16_000, 1_000))
    assert np.abs(error).max() < 1e-4


@pytest.mark.parametrize("rate", [24_000, 44_100, 48_000])
def test_a_tone_that_16_khz_cannot_hold_is_stopped(rate):
    assert np.abs(middle(convert(rate, tone(rate, 9_000)))).max() < 1e-4


def test_the_band_of_speech_is_flat():
    for hertz in (100, 3_000, 6_000, 7_000):
        level = np.abs(middle(convert(48_000, tone(48_000, hertz)))).max()
        assert level == pytest.approx(1.0, abs=2e-3), hertz


def test_a_constant_stays_a_constant():
    converted = convert(44_100, np.full(44_100, 0.5, np.float32))
    assert np.abs(middle(converted) - 0.5).max() < 1e-6


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("size", [1, 37, 480, 5_000])
def test_pieces_of_any_size_make_no_difference(rate, size):
    signal = np.random.default_rng(1).standard_normal(rate // 8).astype(np.float32)
    resampler = Resampler(rate)
    pieces = [resampler.push(signal[at : at + size]) for at in range(0, len(signal), size)]
    pieces.append(resampler.finish())
    whole = convert(rate, signal)
    joined = np.concatenate(pieces)
    assert joined.shape == whole.shape
    assert np.abs(joined - whole).max() < 1e-5


def test_a_stream_keeps_only_what_it_still_needs():
    resampler = Resampler(48_000)
    for _ in range(50):
        resampler.push(np.zeros(4_800, np.float32))
    assert len(resampler._kept) < 1_000


def test_an_empty_signal_gives_an_empty_one():
    assert convert(48_000, np.zeros(0, np.float32)).size == 0


@pytest.mark.parametrize("rate", [0, -1, 3_999, 400_000, 44_099])
def test_a_rate_that_makes_no_sense_is_refused_with_what_is_possible(rate):
    with pytest.raises(FieldInvalidError, match=str(rate)):
        Resampler(rate)


def test_channels_are_averaged():
    stereo = np.array([[0.0, 1.0], [1.0, 1.0]], np.float32)
    assert to_mono(stereo).tolist() == [0.5, 1.0]


def test_audio_longer_than_the_plan_takes_is_the_callers_to_shorten(resample_order):
    order = dataclasses.replace(
        resample_order,
        inputs=(Port("audio", DataType.FLOAT32, AUDIO), Port("rate", DataType.INT32)),
        outputs=(Port("audio", DataType.FLOAT32, (Dimension("samples", 16_000),)),),
    )
    stage = FunctionExecutor().load(order, lambda phase: None)
    execution = LocalExecution(order)
    execution.feed_all(
        {"audio": [np.zeros(48_000, np.float32)], "rate": [np.array(24_000, np.int32)]}
    )

    with pytest.raises(FieldInvalidError, match=r"2\.0 s long, the plan takes 1\.0 s"):
        execution.run(stage)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("sample", [np.nan, np.inf, -np.inf])
def test_a_sample_that_is_no_number_is_refused(resample_order, sample, is_stream):
    order = resample_order
    if is_stream:
        audio_in = dataclasses.replace(order.inputs[0], is_stream=True)
        audio_out = dataclasses.replace(order.outputs[0], is_stream=True)
        order = dataclasses.replace(
            order, inputs=(audio_in, *order.inputs[1:]), outputs=(audio_out,)
        )
    execution = LocalExecution(order)
    audio = np.array([0.0, sample, 0.0], np.float32)
    execution.feed_all({"audio": [audio], "rate": [np.array(48_000, np.int32)]})
    with pytest.raises(FieldInvalidError, match="not a finite number"):
        execution.run(FunctionExecutor().load(order, print))
