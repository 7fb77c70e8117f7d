"""Models, clips and orders for the tests of this worker."""

import os
import wave
from pathlib import Path

import numpy as np
import pytest

from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
AUDIO = (Dimension("samples", 480_000),)


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder that tests/workers/model_files.py fills."""
    folder = os.environ.get("STAGEWIRE_TEST_MODELS")
    assert folder, "set STAGEWIRE_TEST_MODELS to the folder that tests/workers/model_files.py fills"
    return Path(folder)


@pytest.fixture(scope="session")
def clip():
    """Reads a clip of `samples` as float32."""

    def read(name: str) -> np.ndarray:
        with wave.open(str(SAMPLES / name)) as file:
            assert file.getframerate() == 16_000
            frames = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return frames.astype(np.float32) / 32_768

    return read


def text_stream(name: str) -> Port:
    return Port(name, DataType.UTF8, (), is_stream=True)


def audio_stream(name: str) -> Port:
    return Port(name, DataType.FLOAT32, AUDIO, is_stream=True)


@pytest.fixture(scope="session")
def resample_order() -> StageOrder:
    return StageOrder(
        "listen",
        "function",
        "cpu",
        function="resample",
        inputs=(audio_stream("audio"), Port("rate", DataType.INT32)),
        outputs=(audio_stream("audio"),),
    )


@pytest.fixture(scope="session")
def split_order() -> StageOrder:
    return StageOrder(
        "split",
        "function",
        "cpu",
        function="split_sentences",
        inputs=(text_stream("text"),),
        outputs=(text_stream("sentence"),),
    )


@pytest.fixture(scope="session")
def segment_order(models) -> StageOrder:
    return StageOrder(
        "segment",
        "function",
        "cpu",
        artifact_format="onnx:fp32",
        files={"silero_vad.onnx": models / "silero_vad.onnx"},
        function="segment_voice",
        inputs=(audio_stream("audio"),),
        outputs=(audio_stream("speech"),),
    )


@pytest.fixture(scope="session")
def whisper_order(models) -> StageOrder:
    folder = models / "whisper-base"
    return StageOrder(
        "hear",
        "whisper",
        "cpu",
        artifact_format="ct2:fp16",
        files={path.name: path for path in folder.iterdir()},
        inputs=(audio_stream("audio"),),
        outputs=(text_stream("text"),),
    )


@pytest.fixture(scope="session")
def llamacpp_order(models) -> StageOrder:
    return StageOrder(
        "answer",
        "llamacpp",
        "cpu",
        artifact_format="gguf:q4_1",
        files={"smollm2.gguf": models / "smollm2.gguf"},
        options={"max_tokens": 24},
        inputs=(text_stream("prompt"),),
        outputs=(text_stream("text"),),
    )
