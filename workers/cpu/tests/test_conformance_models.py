"""The executors with real models before the suite of every executor."""

import pytest

from stagewire.worker.conformance import CHECKS, Trial
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.llamacpp import LlamacppExecutor
from worker_cpu.whisper import WhisperExecutor

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module", params=["segment_voice", "whisper", "llamacpp"])
def trial(request, segment_order, whisper_order, llamacpp_order, clip):
    make, order, inputs = {
        "segment_voice": (FunctionExecutor, segment_order, {"audio": [clip("librivox-0890.wav")]}),
        "whisper": (
            WhisperExecutor,
            whisper_order,
            {"audio": [clip("librivox-0890.wav")[:16_000], clip("librivox-0930.wav")]},
        ),
        "llamacpp": (
            LlamacppExecutor,
            llamacpp_order,
            {"prompt": ["What does a baker do all day?", "Please answer in one sentence."]},
        ),
    }[request.param]
    with Trial(make, order, inputs, patience_seconds=600) as opened:
        yield opened


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_executor_conforms(trial, check):
    check(trial)


def test_one_thread_is_in_force(trial):
    counts = {
        name: value for name, value in trial.stage.thread_settings.items() if "threads" in name
    }
    assert counts
    assert set(counts.values()) == {"1"}
