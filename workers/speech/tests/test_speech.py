"""A real voice: conformance, threads, rates and what it refuses."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stagewire.errors import FieldInvalidError, LoadFailedError, StageError, TensorMismatchError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import CHECKS, LocalExecution, Trial
from stagewire.worker.executor import StageOrder
from worker_speech.speech import SpeechExecutor

pytestmark = pytest.mark.end_to_end

STEADY = {"noise_scale": 0, "noise_w_scale": 0}
AUDIO = Port("audio", DataType.INT16, (Dimension("samples", 480_000),), is_stream=True)
TEXTS = {"text": ["Hello there.", "The bread is warm."]}


@pytest.fixture(scope="session")
def voice() -> dict[str, Path]:
    """The files of the voice, in the folder that tests/workers/model_files.py fills."""
    folder = os.environ.get("STAGEWIRE_TEST_MODELS")
    assert folder, "set STAGEWIRE_TEST_MODELS to the folder that tests/workers/model_files.py fills"
    return {name: Path(folder, name) for name in ("voice.onnx", "voice.onnx.json")}


@pytest.fixture(scope="session")
def order(voice) -> StageOrder:
    return StageOrder(
        "speak",
        "speech",
        "cpu",
        artifact_format="onnx:fp32",
        files=voice,
        options=STEADY,
        inputs=(Port("text", DataType.UTF8, (), is_stream=True),),
        outputs=(AUDIO, Port("rate", DataType.INT32)),
    )


@pytest.fixture(scope="module")
def trial(order):
    with Trial(SpeechExecutor, order, TEXTS, patience_seconds=600) as opened:
        yield opened


def refusal(order: StageOrder) -> StageError:
    with pytest.raises(StageError) as caught:
        SpeechExecutor().load(order, lambda _: None)
    return caught.value


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_executor_conforms(trial, check):
    check(trial)


def test_one_thread_is_in_force(trial):
    assert trial.stage.thread_settings["onnxruntime.intra_op_num_threads"] == "1"
    assert trial.stage.thread_settings["onnxruntime.intra_op.allow_spinning"] == "0"


def test_each_sentence_is_an_item_and_the_rate_is_told(trial):
    outputs = trial.complete(TEXTS, "two sentences")
    assert [int(rate) for rate in outputs["rate"]] == [22_050]
    assert len(outputs["audio"]) == 2
    assert all(8_000 < len(item) < 60_000 for item in outputs["audio"])
    assert all(np.abs(item.astype(int)).max() > 3_000 for item in outputs["audio"])


def test_a_sentence_is_spoken_before_the_next_one_comes(trial, order):
    execution = LocalExecution(order)
    run = trial.start(execution)
    execution.feed("text", "Hello there.")
    assert execution.take("audio", timeout_seconds=600) is not None
    execution.end()
    run.expect_return("the text ended")


@pytest.mark.parametrize("text", ["", "  ", "...", "\n"])
def test_what_has_no_sound_is_passed_over(trial, text):
    outputs = trial.complete({"text": [text, "Hello."]}, "no sound")
    assert outputs["audio"]


def test_a_port_for_short_items_gets_the_same_audio_in_pieces(trial, order):
    whole = trial.complete(TEXTS, "whole")["audio"]
    short = replace(AUDIO, dimensions=(Dimension("samples", 5_000),))
    with Trial(SpeechExecutor, replace(order, outputs=(short,)), TEXTS) as pieces:
        parts = pieces.complete(TEXTS, "pieces")["audio"]
    assert len(parts) > len(whole)
    assert np.array_equal(np.concatenate(parts), np.concatenate(whole))


def test_a_seed_repeats_the_noise_from_load_to_load(order):
    spoken = []
    for seed in (1, 1, 2):
        with Trial(SpeechExecutor, replace(order, options={"seed": seed}), TEXTS) as trial:
            spoken.append(trial.complete(TEXTS, "noise")["audio"][0].tolist())
    assert spoken[0] == spoken[1] != spoken[2]


def test_speech_can_be_slowed_down(trial, order):
    options = {**STEADY, "length_scale": 2.0}
    with Trial(SpeechExecutor, replace(order, options=options), TEXTS) as slow:
        slowly = sum(map(len, slow.complete(TEXTS, "slow")["audio"]))
    assert slowly > 1.5 * sum(map(len, trial.complete(TEXTS, "usual")["audio"]))


def test_a_ramp_speaks_the_same_words_in_more_pieces(order):
    text = "In the mountains, where the snow melts in spring, a river begins as a small stream."
    spoken = {}
    for first_seconds in (0, 1):
        options = {**STEADY, "first_seconds": first_seconds}
        with Trial(SpeechExecutor, replace(order, options=options), {"text": [text]}) as trial:
            spoken[first_seconds] = trial.complete({"text": [text]}, "a ramp")["audio"]

    assert len(spoken[0]) == 1
    assert len(spoken[1]) > 1
    assert len(spoken[1][0]) < len(spoken[0][0]) / 2
    # Each piece ends with the pause of a clause.
    assert 0.9 < sum(map(len, spoken[1])) / len(spoken[0][0]) < 1.5


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sample_rate": 16_000}, "22050"),
        ({"noise_scale": -1}, "noise_scale"),
        ({"speaker": 1}, "speaker"),
        ({"pitch": 1}, "pitch"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(order, options, named):
    error = refusal(replace(order, options=options))
    assert isinstance(error, FieldInvalidError)
    assert named in error.message


def test_audio_of_another_type_is_refused(order):
    error = refusal(replace(order, outputs=(replace(AUDIO, data_type=DataType.FLOAT32),)))
    assert isinstance(error, TensorMismatchError)


@pytest.mark.parametrize("config", ["no json", "[]", "{}", json.dumps({"num_symbols": 1})])
def test_a_voice_without_a_usable_description_is_refused(order, voice, tmp_path, config):
    path = tmp_path / "voice.onnx.json"
    path.write_text(config)
    error = refusal(replace(order, files={**voice, "voice.onnx.json": path}))
    assert isinstance(error, LoadFailedError)
    assert str(tmp_path) not in error.message


def test_describing_loads_no_library():
    program = (
        "import sys; from worker_speech.speech import SpeechExecutor;"
        "row, = SpeechExecutor().describe();"
        "print(row.library_version, row.unavailable_reason,"
        " {'piper', 'onnxruntime'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip().startswith("1.8")
    assert result.stdout.strip().endswith("set()")
