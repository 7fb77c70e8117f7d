"""What libraries say when they fail during a run is not made a message for clients."""

from types import SimpleNamespace

import numpy as np
import pytest

from stagewire.errors import FieldInvalidError, StageError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder
from stagewire.worker.local_execution import LocalExecution
from worker_cpu.llamacpp import LlamacppStage, read_settings
from worker_cpu.whisper import WhisperStage
from worker_cpu.whisper import read_settings as read_whisper_settings

pytestmark = pytest.mark.unit

ANSWER = StageOrder(
    "answer",
    "llamacpp",
    "cpu",
    inputs=(Port("prompt", DataType.UTF8),),
    outputs=(Port("text", DataType.UTF8, is_stream=True),),
)
HEAR = StageOrder(
    "hear",
    "whisper",
    "cpu",
    inputs=(Port("audio", DataType.FLOAT32, (Dimension("samples", 64),)),),
    outputs=(Port("text", DataType.UTF8),),
)
SECRET = "/srv/models/secret.bin: tensor 'blk.7' is odd"


class FailingLlama:
    """The library, which reports a failure as an event."""

    def __init__(self, error):
        self._error = error

    def handle_chat_completions(self, request, take):
        assert take({"error": self._error})


class FailingWhisper:
    """The library, which raises."""

    def transcribe(self, audio, **options):
        raise RuntimeError(SECRET)


def answering(error) -> LlamacppStage:
    threads = SimpleNamespace(n_threads=1, poll=0)
    parameters = SimpleNamespace(cpuparams=threads, cpuparams_batch=threads, n_parallel=1)
    return LlamacppStage(FailingLlama(error), parameters, read_settings(ANSWER))


def run(stage, order, **items) -> BaseException:
    execution = LocalExecution(order)
    execution.feed_all({name: [value] for name, value in items.items()})
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its class is what is tested
        execution.run(stage)
    return caught.value


def test_the_text_of_llamacpp_goes_to_the_log_of_the_host():
    failure = run(answering({"type": "server_error", "message": SECRET}), ANSWER, prompt="Hello")

    # The host keeps the text of what is no class of the table from clients.
    assert not isinstance(failure, StageError)
    assert SECRET in str(failure)


def test_a_prompt_over_the_context_is_refused_in_our_own_words():
    error = {
        "type": "exceed_context_size_error",
        "message": SECRET,
        "n_prompt_tokens": 300,
        "n_ctx": 128,
    }

    failure = run(answering(error), ANSWER, prompt="Hello")

    assert isinstance(failure, FieldInvalidError)
    assert "300 tokens and the context holds 128" in failure.message
    assert SECRET not in failure.message


def test_the_text_of_ctranslate2_goes_to_the_log_of_the_host():
    stage = WhisperStage(FailingWhisper(), read_whisper_settings(HEAR), 1)

    failure = run(stage, HEAR, audio=np.zeros(8, np.float32))

    assert not isinstance(failure, StageError)
