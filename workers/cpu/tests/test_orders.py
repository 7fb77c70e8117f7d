"""Orders that are refused before anything is loaded, each with what to change."""

from dataclasses import replace

import pytest

from stagewire.errors import (
    ArtifactMissingError,
    CapabilityMissingError,
    FieldInvalidError,
    FormatUnsupportedError,
    LoadFailedError,
    StageError,
    TensorMismatchError,
)
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.llamacpp import LlamacppExecutor
from worker_cpu.whisper import WhisperExecutor

pytestmark = pytest.mark.unit

TEXT = Port("text", DataType.UTF8, (), is_stream=True)
PROMPT = Port("prompt", DataType.UTF8, (), is_stream=True)
AUDIO = Port("audio", DataType.FLOAT32, (Dimension("samples", 480_000),), is_stream=True)
SPEECH = replace(AUDIO, name="speech")
RATE = Port("rate", DataType.INT32)

WHISPER = StageOrder(
    "hear", "whisper", "cpu", artifact_format="ct2:fp16", inputs=(AUDIO,), outputs=(TEXT,)
)
LLAMACPP = StageOrder(
    "answer", "llamacpp", "cpu", artifact_format="gguf:q4_1", inputs=(PROMPT,), outputs=(TEXT,)
)
SEGMENT = StageOrder(
    "segment",
    "function",
    "cpu",
    artifact_format="onnx:fp32",
    function="segment_voice",
    inputs=(AUDIO,),
    outputs=(SPEECH,),
)
RESAMPLE = StageOrder(
    "listen", "function", "cpu", function="resample", inputs=(AUDIO, RATE), outputs=(AUDIO,)
)
SPLIT = StageOrder(
    "split",
    "function",
    "cpu",
    function="split_sentences",
    inputs=(TEXT,),
    outputs=(replace(TEXT, name="sentence"),),
)
EXECUTORS = {
    "whisper": WhisperExecutor,
    "llamacpp": LlamacppExecutor,
    "function": FunctionExecutor,
}


def refusal(order: StageOrder) -> StageError:
    with pytest.raises(StageError) as caught:
        EXECUTORS[order.executor]().load(order, lambda _: None)
    return caught.value


@pytest.mark.parametrize(
    ("order", "options", "named"),
    [
        (WHISPER, {"beam_size": 0}, "beam_size"),
        (WHISPER, {"beam_size": True}, "beam_size"),
        (WHISPER, {"compute_type": "int4"}, "int8_float32"),
        (WHISPER, {"language": 5}, "language"),
        (WHISPER, {"task": "sing"}, "translate"),
        (WHISPER, {"beam_sise": 1}, "beam_sise"),
        (LLAMACPP, {"max_tokens": 0}, "max_tokens"),
        (LLAMACPP, {"temperature": "hot"}, "temperature"),
        (LLAMACPP, {"temperature": float("nan")}, "temperature"),
        (LLAMACPP, {"stop": ["", "x"]}, "stop"),
        (LLAMACPP, {"stop": "x"}, "stop"),
        (LLAMACPP, {"cache_prompt": 1}, "true or false"),
        (SEGMENT, {"threshold": 2}, "threshold"),
        (SEGMENT, {"threshold": 0.3, "release_threshold": 0.4}, "release_threshold"),
        (SEGMENT, {"max_segment_ms": 31_000}, "'max_segment_ms' to 29984"),
        (SPLIT, {"min_characters": 500}, "max_characters"),
        (RESAMPLE, {"quality": "best"}, "quality"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(order, options, named):
    error = refusal(replace(order, options=options))
    assert isinstance(error, FieldInvalidError)
    assert named in error.message
    assert order.stage_id in error.message


@pytest.mark.parametrize(
    ("order", "named"),
    [
        (replace(WHISPER, inputs=()), "audio"),
        (replace(WHISPER, inputs=(AUDIO, RATE)), "rate"),
        (replace(WHISPER, inputs=(replace(AUDIO, data_type=DataType.INT16),)), "float32"),
        (replace(WHISPER, inputs=(replace(AUDIO, dimensions=()),)), "dimensions"),
        (replace(LLAMACPP, outputs=(replace(TEXT, is_stream=False),)), "stream"),
        (replace(RESAMPLE, inputs=(AUDIO,)), "rate"),
        (replace(RESAMPLE, outputs=(replace(AUDIO, is_stream=False),)), "streams"),
    ],
)
def test_ports_that_do_not_fit_are_refused_by_name(order, named):
    error = refusal(order)
    assert isinstance(error, TensorMismatchError)
    assert named in error.message


@pytest.mark.parametrize("order", [WHISPER, LLAMACPP, SEGMENT])
def test_another_format_is_refused_with_those_that_run(order):
    error = refusal(replace(order, artifact_format="pt:fp32"))
    assert isinstance(error, FormatUnsupportedError)
    assert order.artifact_format in error.message


@pytest.mark.parametrize("order", [WHISPER, LLAMACPP, SEGMENT])
def test_an_artifact_without_its_file_is_refused(order):
    assert isinstance(refusal(order), (LoadFailedError, ArtifactMissingError))


def test_an_unknown_function_is_refused_with_those_that_exist():
    error = refusal(replace(SPLIT, function="translate"))
    assert isinstance(error, CapabilityMissingError)
    assert "split_sentences" in error.message


def test_a_function_without_artifact_refuses_one(tmp_path):
    error = refusal(replace(SPLIT, files={"a": tmp_path / "a"}))
    assert isinstance(error, LoadFailedError)


def test_a_file_that_is_not_gguf_is_refused(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"something else")
    error = refusal(replace(LLAMACPP, files={"model.gguf": path}))
    assert isinstance(error, FormatUnsupportedError)
    assert str(tmp_path) not in error.message


def test_a_damaged_gguf_is_refused(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(1000))
    error = refusal(replace(LLAMACPP, files={"model.gguf": path}))
    assert isinstance(error, LoadFailedError)


def test_a_whisper_folder_without_its_tokenizer_is_refused(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"")
    error = refusal(replace(WHISPER, files={"model.bin": path}))
    assert isinstance(error, LoadFailedError)
    assert "tokenizer.json" in error.message


def test_a_damaged_whisper_model_is_refused_without_its_path(tmp_path):
    files = {}
    for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"):
        files[name] = tmp_path / name
        files[name].write_bytes(b"{}")
    error = refusal(replace(WHISPER, files=files))
    assert isinstance(error, LoadFailedError)
    assert str(tmp_path) not in error.message
