"""The executors of this worker."""

from stagewire.worker.executor import Executor
from worker_speech.speech import SpeechExecutor


def every_executor() -> list[Executor]:
    """Returns one of each; none has loaded anything yet."""
    return [SpeechExecutor()]
