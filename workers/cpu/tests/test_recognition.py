"""Recorded speech through the voice model and Whisper, against what was read aloud."""

import re

import numpy as np
import pytest

from stagewire.worker.conformance import LocalExecution, Trial
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.whisper import WhisperExecutor

pytestmark = pytest.mark.end_to_end

READ_ALOUD = {
    "librivox-0890.wav": (
        "unless to be rather cold hearted and rather selfish is to be ill disposed"
    ),
    "librivox-0930.wav": "he might even have been made amiable himself",
}


@pytest.fixture(scope="module")
def segmenting(segment_order):
    with Trial(FunctionExecutor, segment_order, {}) as trial:
        yield trial


@pytest.fixture(scope="module")
def hearing(whisper_order):
    with Trial(WhisperExecutor, whisper_order, {}, patience_seconds=600) as trial:
        yield trial


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


@pytest.mark.parametrize("name", READ_ALOUD)
def test_speech_is_segmented_and_recognised(segmenting, hearing, clip, name):
    pause = np.zeros(16_000, np.float32)
    segments = segmenting.complete({"audio": [pause, clip(name), pause]}, name)["speech"]
    texts = hearing.complete({"audio": segments}, name)["text"]
    assert len(segments) == 1
    assert len(segments[0]) <= len(clip(name)) + 2 * 16_000 // 5
    assert words(" ".join(texts)) == words(READ_ALOUD[name])


def test_two_clips_are_two_segments_in_the_order_of_the_audio(segmenting, clip):
    pause = np.zeros(16_000, np.float32)
    both = [clip("librivox-0890.wav"), pause, clip("librivox-0930.wav")]
    assert len(segmenting.complete({"audio": both}, "two clips")["speech"]) == 2


def test_a_segment_leaves_before_the_audio_ends(segmenting, segment_order, clip):
    execution = LocalExecution(segment_order)
    run = segmenting.start(execution)
    execution.feed("audio", clip("librivox-0890.wav"))
    execution.feed("audio", np.zeros(32_000, np.float32))
    assert execution.take("speech", timeout_seconds=300) is not None
    execution.end()
    run.expect_return("the audio ended")


def test_pieces_of_any_size_give_the_same_segments(segmenting, clip):
    audio = clip("librivox-0930.wav")
    whole = segmenting.complete({"audio": [audio]}, "whole")["speech"]
    pieces = [audio[at : at + 333] for at in range(0, len(audio), 333)]
    parts = segmenting.complete({"audio": pieces}, "pieces")["speech"]
    assert [item.tolist() for item in parts] == [item.tolist() for item in whole]


def test_noise_and_silence_are_not_speech(segmenting):
    noise = np.random.default_rng(1).standard_normal(48_000).astype(np.float32) * 0.01
    assert segmenting.complete({"audio": [noise, noise * 0]}, "noise")["speech"] == []


def test_each_text_leaves_before_the_next_audio_comes(hearing, whisper_order, clip):
    execution = LocalExecution(whisper_order)
    run = hearing.start(execution)
    execution.feed("audio", clip("librivox-0930.wav"))
    assert execution.take("text", timeout_seconds=600)
    execution.end()
    run.expect_return("the audio ended")


def test_silence_and_a_single_sample_still_give_one_text_each(hearing):
    items = [np.zeros(16_000, np.float32), np.zeros(1, np.float32), np.zeros(0, np.float32)]
    texts = hearing.complete({"audio": items}, "silence")["text"]
    assert len(texts) == 3
    assert texts[2] == ""
