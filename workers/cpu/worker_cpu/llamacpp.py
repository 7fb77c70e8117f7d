"""Executor `llamacpp`: text from a GGUF model with llama.cpp, inside this process.

The items of `prompt` are joined into one message of the user; the answer leaves as it is generated.
Within a session the model reads the turns before as well, as many of the last ones as its context
holds beside the prompt and the longest answer; an answer that was not finished is no turn.
"""

import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stagewire.errors import (
    EnvironmentBrokenError,
    FieldInvalidError,
    FormatUnsupportedError,
    LoadFailedError,
    StageFaultError,
)
from stagewire.tensor import DataType, Value
from stagewire.worker.executor import Capability, Execution, Progress, StageOrder
from stagewire.worker.order import (
    OptionReader,
    PortRule,
    check_format,
    check_ports,
    library_capability,
    library_text,
    single_file,
)

FORMATS: Final = tuple(
    f"gguf:{name}"
    for name in (
        *("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k_s"),
        *("q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "q6_k", "iq4_nl", "iq4_xs"),
    )
)
INPUTS: Final = (PortRule("prompt", DataType.UTF8),)
OUTPUTS: Final = (PortRule("text", DataType.UTF8, is_stream=True),)
PROMPT_BATCH: Final = 128
"""Tokens of a prompt that are computed between two looks at a cancel: about a second."""
_MAGIC: Final = b"GGUF"
_TOO_LONG: Final = "exceed_context_size_error"


@dataclass(frozen=True, slots=True)
class LlamacppSettings:
    """Options of a stage."""

    system_prompt: str
    context_tokens: int
    max_tokens: int
    temperature: float
    top_p: float
    repeat_penalty: float
    seed: int
    stop: tuple[str, ...]
    cache_prompt: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a session and its whole answer."""

    prompt: str
    answer: str


class LlamacppExecutor:
    """Runs GGUF models with llama.cpp as packed by xllamacpp."""

    name = "llamacpp"

    def describe(self) -> Sequence[Capability]:
        """Says whether xllamacpp is installed."""
        return [library_capability(self.name, FORMATS, "xllamacpp", "xllamacpp")]

    def load(self, order: StageOrder, progress: Progress) -> "LlamacppStage":
        """Maps the weights and allocates the context."""
        check_format(order, FORMATS)
        check_ports(order, INPUTS, OUTPUTS)
        settings = read_settings(order)
        model = single_file(order, ".gguf")
        with model.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise FormatUnsupportedError(f"stage {order.stage_id}: {model.name} is not GGUF")
        try:
            import xllamacpp
        except ImportError as error:
            raise EnvironmentBrokenError(
                f"xllamacpp cannot be imported: {library_text(error)}"
            ) from error
        progress("mapping weights")
        parameters = _parameters(xllamacpp.CommonParams(), order, settings, model)
        # The library insists on a listener. It gets a socket in a folder of ours which is gone once
        # it listens, so that nobody can connect, and a key that nobody knows.
        folder = tempfile.mkdtemp(prefix="stagewire-")
        parameters.hostnames = [str(Path(folder) / "s.sock")]
        parameters.api_keys = [secrets.token_hex(32)]
        try:
            server = xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise LoadFailedError(
                f"stage {order.stage_id}: llama.cpp refuses {model.name};"
                " check that the file is whole and that the context fits into memory"
            ) from error
        finally:
            shutil.rmtree(folder)
        return LlamacppStage(server, parameters, settings)

    def close(self) -> None:
        """Holds nothing of its own."""


class LlamacppStage:
    """One model with its context."""

    # `server` and `parameters` are objects of xllamacpp, which has no types.
    def __init__(self, server: Any, parameters: Any, settings: LlamacppSettings) -> None:
        self._server = server
        self._settings = settings
        self._thread_settings = {
            "llamacpp.decode_threads": str(parameters.cpuparams.n_threads),
            "llamacpp.batch_threads": str(parameters.cpuparams_batch.n_threads),
            "llamacpp.poll": str(parameters.cpuparams.poll),
            "llamacpp.slots": str(parameters.n_parallel),
        }

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from the parameters that the library took."""
        return self._thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a short prompt."""
        return {"prompt": ["Hello"]}

    def run(self, execution: Execution) -> None:
        """Answers the joined prompt; without any text there is nothing to answer."""
        prompt = " ".join(
            text for text in (str(item).strip() for item in execution.items("prompt")) if text
        )
        if not prompt:
            return
        session = execution.session
        turns: tuple[Turn, ...] = ()
        if session is not None and isinstance(session.state, tuple):
            turns = session.state
        answer = self._answer(execution, prompt, turns)
        while answer.is_crowded and turns:
            # The oldest turn is forgotten; what remains is counted again, before it is computed.
            turns = turns[1:]
            answer = self._answer(execution, prompt, turns)
        answer.conclude()
        if session is not None:
            turns += (Turn(prompt, "".join(answer.pieces)),)
            size = sum(len(turn.prompt.encode()) + len(turn.answer.encode()) for turn in turns)
            session.keep(turns, size_bytes=size)

    def _answer(self, execution: Execution, prompt: str, turns: Sequence[Turn]) -> "_Answer":
        settings = self._settings
        room = settings.context_tokens - settings.max_tokens if turns else None
        answer = _Answer(execution, room)
        # Returns when the callback was told the end or asked to stop.
        self._server.handle_chat_completions(self._request(prompt, turns), answer.take)
        return answer

    def _request(
        self, prompt: str, turns: Sequence[Turn]
    ) -> dict[str, Any]:  # JSON of llama.cpp's chat API
        settings = self._settings
        messages = []
        if settings.system_prompt:
            messages.append({"role": "system", "content": settings.system_prompt})
        for turn in turns:
            messages.append({"role": "user", "content": turn.prompt})
            messages.append({"role": "assistant", "content": turn.answer})
        messages.append({"role": "user", "content": prompt})
        return {
            "messages": messages,
            "stream": True,
            # Calls back before a prompt is computed, with its length, and between its batches, so
            # that a cancel is seen there.
            "return_progress": True,
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "repeat_penalty": settings.repeat_penalty,
            "seed": settings.seed,
            "stop": list(settings.stop),
            "cache_prompt": settings.cache_prompt,
        }

    def release(self) -> None:
        """Ends the library's threads and frees the weights."""
        self._server = None


class _Answer:
    """Passes the pieces of one answer on to an execution.

    `room_tokens` is what the prompt may take when there are turns in it that can be left out.
    """

    def __init__(self, execution: Execution, room_tokens: int | None) -> None:
        self._execution = execution
        self._room_tokens = room_tokens
        self.pieces: list[str] = []
        self.is_crowded = False
        """Whether nothing was answered because turns have to be left out first."""
        self._ended: BaseException | None = None
        self._error: Mapping[str, Any] | None = None  # JSON of llama.cpp's chat API
        self._is_finished = False

    def take(self, event: Mapping[str, Any]) -> bool:
        """Called by llama.cpp for each piece; returns whether it shall stop."""
        try:
            self._error = event.get("error")
            self.is_crowded = self._is_over_room(event)
            if self._error is None and not self.is_crowded:
                self._pass_on(event)
        except BaseException as ended:  # native code would swallow it in silence
            self._ended = ended
        return self._ended is not None or self._error is not None or self.is_crowded

    def _is_over_room(self, event: Mapping[str, Any]) -> bool:
        if self._room_tokens is None:
            return False
        if self._error is not None:
            return self._error.get("type") == _TOO_LONG
        total = event.get("prompt_progress", {}).get("total", 0)
        return isinstance(total, int) and total > self._room_tokens

    def _pass_on(self, event: Mapping[str, Any]) -> None:
        self._execution.check()
        for choice in event.get("choices", ()):
            # llama.cpp holds back bytes of a character, and what may become a stop text.
            text = choice.get("delta", {}).get("content")
            if text:
                self._execution.send("text", text)
                self.pieces.append(text)
            if choice.get("finish_reason"):
                self._is_finished = True

    def conclude(self) -> None:
        """Raises what ended the answer early."""
        if self._ended is not None:
            raise self._ended
        if self._error is not None:
            if self._error.get("type") == _TOO_LONG:
                needed, held = self._error.get("n_prompt_tokens"), self._error.get("n_ctx")
                raise FieldInvalidError(
                    f"the prompt has {needed} tokens and the context holds {held};"
                    " shorten it, or raise the stage's option 'context_tokens'"
                )
            # No class of the table: the host logs this text and tells a client its error id only.
            raise RuntimeError(f"llama.cpp failed: {self._error}")
        if not self._is_finished:
            raise StageFaultError("llama.cpp ended an answer without saying why")


def read_settings(order: StageOrder) -> LlamacppSettings:
    """Returns the options of a stage.

    Raises:
        FieldInvalidError: one is unknown or out of range.
    """
    options = OptionReader(order)
    settings = LlamacppSettings(
        system_prompt=options.text("system_prompt", ""),
        context_tokens=options.integer("context_tokens", 2048, low=128, high=1 << 20),
        max_tokens=options.integer("max_tokens", 128, low=1, high=1 << 16),
        temperature=options.number("temperature", 0.0, low=0.0, high=2.0),
        top_p=options.number("top_p", 0.95, low=0.01, high=1.0),
        repeat_penalty=options.number("repeat_penalty", 1.0, low=0.5, high=2.0),
        seed=options.integer("seed", 0, low=0, high=(1 << 32) - 2),
        stop=options.texts("stop", most=8),
        # Off: a prefix from the cache is computed in other batches, and greedy text may differ.
        cache_prompt=options.flag("cache_prompt", default=False),
    )
    options.finish()
    return settings


def _parameters(
    parameters: Any,  # xllamacpp.CommonParams, which has no types
    order: StageOrder,
    settings: LlamacppSettings,
    model: Path,
) -> Any:
    parameters.model.path = str(model)
    parameters.n_parallel = order.concurrency
    # The context is divided among the slots.
    parameters.n_ctx = settings.context_tokens * order.concurrency
    parameters.n_batch = parameters.n_ubatch = PROMPT_BATCH
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = order.thread_count
        threads.poll = 0
    parameters.n_threads_http = 1
    parameters.n_gpu_layers = 0
    # Memory is what the plan says, not what the library finds free or keeps for later.
    parameters.fit_params = False
    parameters.cache_ram_mib = 0
    parameters.cache_idle_slots = False
    parameters.n_ctx_checkpoints = 0
    parameters.warmup = False
    parameters.offline = True
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.verbosity = 0
    return parameters
