"""Models, clips, images and orders for the tests of this worker."""

import json
import os
import wave
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

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


@pytest.fixture(scope="session")
def picture():
    """Reads an image of `samples` as uint8 [height, width, 3]."""

    def read(name: str) -> np.ndarray:
        with Image.open(SAMPLES / name) as opened:
            return np.array(opened.convert("RGB"))

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


IMAGE = Port(
    "image",
    DataType.UINT8,
    (Dimension("height", 32_000), Dimension("width", 32_000), Dimension("", 3)),
)
CANVAS = (Dimension("", 1), Dimension("", 3), Dimension("height", 1600), Dimension("width", 1600))
AREA = Port("area", DataType.INT32, (Dimension("", 4),))
STEPS = (Dimension("", 1), Dimension("steps", 300))
CHARACTERS = "abcdefghijklmnopqrstuvwxyz.,!"


def vision_ports() -> dict[str, tuple[tuple[Port, ...], tuple[Port, ...]]]:
    crop = (Dimension("", 1), Dimension("", 3), Dimension("", 48), Dimension("width", 2400))
    return {
        "page_prepare": ((IMAGE,), (Port("canvas", DataType.FLOAT32, CANVAS), AREA, IMAGE)),
        "page_boxes": (
            (IMAGE, AREA, Port("map", DataType.FLOAT32, (CANVAS[0], CANVAS[0], *CANVAS[2:]))),
            (Port("crop", DataType.FLOAT32, crop, is_stream=True),),
        ),
        "page_text": (
            (
                Port("class", DataType.INT64, STEPS, is_stream=True),
                Port("probability", DataType.FLOAT32, STEPS, is_stream=True),
            ),
            (text_stream("line"), Port("confidence", DataType.FLOAT32, is_stream=True)),
        ),
        "photo_prepare": (
            (IMAGE,),
            (
                Port(
                    "pixels",
                    DataType.FLOAT32,
                    (CANVAS[0], CANVAS[1], Dimension("", 224), Dimension("", 224)),
                ),
            ),
        ),
        "top_label": (
            (Port("logits", DataType.FLOAT32, (Dimension("", 1), Dimension("", 3))),),
            (Port("label", DataType.UTF8), Port("probability", DataType.FLOAT32)),
        ),
        "compose_prompt": (
            (text_stream("line"), Port("label", DataType.UTF8)),
            (Port("prompt", DataType.UTF8),),
        ),
    }


@pytest.fixture(scope="session")
def artifact_files(tmp_path_factory) -> dict[str, dict[str, Path]]:
    """Small artifacts: a graph with characters in its metadata, and names of three classes."""
    folder = tmp_path_factory.mktemp("artifacts")
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [value], [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"character": "\n".join(CHARACTERS)})
    onnx.save(model, str(folder / "reader.onnx"))
    (folder / "names.json").write_text(json.dumps(["cat", "dog", "tea cup"]), encoding="utf-8")
    return {
        "page_text": {"reader.onnx": folder / "reader.onnx"},
        "top_label": {"names.json": folder / "names.json"},
    }


@pytest.fixture(scope="session")
def vision_order(artifact_files):
    """Makes an order of a function on images or on what is said of them."""

    def make(function: str, **options) -> StageOrder:
        inputs, outputs = vision_ports()[function]
        return StageOrder(
            "look",
            "function",
            "cpu",
            function=function,
            artifact_format="onnx:fp32" if function in artifact_files else "",
            files=artifact_files.get(function, {}),
            options=options,
            inputs=inputs,
            outputs=outputs,
        )

    return make
