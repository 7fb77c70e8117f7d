"""The executors of this worker."""

from stagewire.worker.executor import Executor
from worker_cpu.functions.executor import FunctionExecutor
from worker_cpu.llamacpp import LlamacppExecutor
from worker_cpu.onnx import OnnxExecutor
from worker_cpu.whisper import WhisperExecutor


def every_executor() -> list[Executor]:
    """Returns one of each; none has loaded anything yet."""
    return [OnnxExecutor(), WhisperExecutor(), LlamacppExecutor(), FunctionExecutor()]
