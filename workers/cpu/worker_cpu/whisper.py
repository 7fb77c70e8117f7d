"""Executor `whisper`: speech to text with a Whisper model in CTranslate2's form.

Audio comes decoded and cut into utterances; the library's own means for both are unused.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from stagewire.errors import EnvironmentBrokenError, FieldInvalidError, LoadFailedError
from stagewire.tensor import Array, DataType, Value
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
from worker_cpu.fitted_window import SHORT_SAMPLES, fit_window

FORMATS: Final = ("ct2:fp32", "ct2:fp16", "ct2:int8")
SAMPLE_RATE: Final = 16_000
WINDOW_SAMPLES: Final = 30 * SAMPLE_RATE
INPUTS: Final = (PortRule("audio", DataType.FLOAT32, ranks=(1,)),)
OUTPUTS: Final = (PortRule("text", DataType.UTF8),)
COMPUTE_TYPES: Final = ("int8", "int8_float32", "int16", "bfloat16", "float32")
NEEDED_FILES: Final = ("config.json", "tokenizer.json")
"""Without the tokenizer the library would ask a model hub for one."""
AUTOMATIC: Final = "auto"


@dataclass(frozen=True, slots=True)
class WhisperSettings:
    """Options of a stage."""

    language: str
    task: str
    beam_size: int
    compute_type: str
    prompt: str
    window: str
    """What is encoded: `full` 30 seconds, `fitted` what the item needs, `auto` by its length."""

    def is_fitted(self, sample_count: int) -> bool:
        """Whether an item of that length is encoded as long as it is."""
        is_short = sample_count <= SHORT_SAMPLES
        return self.window == "fitted" or (self.window == "auto" and is_short)


class WhisperExecutor:
    """Runs Whisper models with faster-whisper on CTranslate2."""

    name = "whisper"

    def describe(self) -> Sequence[Capability]:
        """Says whether faster-whisper is installed."""
        return [library_capability(self.name, FORMATS, "faster-whisper", "faster_whisper")]

    def load(self, order: StageOrder, progress: Progress) -> "WhisperStage":
        """Reads the model and quantizes it to the compute type."""
        check_format(order, FORMATS)
        check_ports(order, INPUTS, OUTPUTS)
        settings = read_settings(order)
        folder = _model_folder(order)
        progress("importing faster-whisper")
        # Asked before the import, which reads it: nothing may be fetched at run time.
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise EnvironmentBrokenError(
                f"faster-whisper cannot be imported: {library_text(error)}"
            ) from error
        progress("reading weights")
        try:
            model = fit_window(WhisperModel)(
                str(folder),
                device="cpu",
                compute_type=settings.compute_type,
                cpu_threads=order.thread_count,
                num_workers=1,
                local_files_only=True,
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise LoadFailedError(
                f"stage {order.stage_id}: CTranslate2 refuses the model:"
                f" {library_text(error, folder)}"
            ) from error
        languages = model.supported_languages
        if settings.language not in (AUTOMATIC, *languages):
            raise FieldInvalidError(
                f"stage {order.stage_id}: option 'language' is {settings.language!r};"
                f" this model knows {AUTOMATIC}, {', '.join(languages)}"
            )
        return WhisperStage(model, settings, order.thread_count)

    def close(self) -> None:
        """Holds nothing of its own."""


class WhisperStage:
    """One model: each audio item becomes one text item as soon as it is recognised."""

    # `model` is a faster_whisper.WhisperModel, which has no types.
    def __init__(self, model: Any, settings: WhisperSettings, thread_count: int) -> None:
        self._model = model
        self._settings = settings
        self._thread_count = thread_count

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads as given to CTranslate2; it tells back only its workers and compute type."""
        return {
            "ctranslate2.intra_threads": str(self._thread_count),
            "ctranslate2.inter_threads": str(self._model.model.num_workers),
            "ctranslate2.compute_type": str(self._model.model.compute_type),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", ""),
        }

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns half a second of silence."""
        return {"audio": [np.zeros(SAMPLE_RATE // 2, dtype=np.float32)]}

    def run(self, execution: Execution) -> None:
        """Recognises each audio item; silence gives an empty text, so that items still pair up."""
        for audio in execution.items("audio"):
            execution.send("text", self._recognise(execution, np.asarray(audio)))

    def _recognise(self, execution: Execution, audio: Array) -> str:
        if not audio.size:
            return ""
        settings = self._settings
        self._model.sample_count = audio.size if settings.is_fitted(audio.size) else WINDOW_SAMPLES
        segments, _ = self._model.transcribe(
            audio,
            language=None if settings.language == AUTOMATIC else settings.language,
            task=settings.task,
            beam_size=settings.beam_size,
            # One temperature: the library's ladder of them would sample, and differ by the run.
            temperature=0.0,
            without_timestamps=True,
            condition_on_previous_text=False,
            initial_prompt=settings.prompt or None,
            vad_filter=False,
        )
        texts = []
        for segment in segments:
            execution.check()
            texts.append(segment.text.strip())
        return " ".join(text for text in texts if text)

    def release(self) -> None:
        """Frees the weights."""
        self._model.model.unload_model()
        self._model = None


def read_settings(order: StageOrder) -> WhisperSettings:
    """Returns the options of a stage.

    Raises:
        FieldInvalidError: one is unknown or out of range.
    """
    options = OptionReader(order)
    settings = WhisperSettings(
        language=options.text("language", "en"),
        task=options.text("task", "transcribe", choices=("transcribe", "translate")),
        beam_size=options.integer("beam_size", 1, low=1, high=10),
        compute_type=options.text("compute_type", "int8", choices=COMPUTE_TYPES),
        prompt=options.text("prompt", ""),
        window=options.text("window", "auto", choices=("auto", "full", "fitted")),
    )
    options.finish()
    return settings


def _model_folder(order: StageOrder) -> Path:
    folder = single_file(order, "model.bin").parent
    names = {path.name for path in order.files.values() if path.parent == folder}
    missing = [name for name in NEEDED_FILES if name not in names]
    if not any(name.startswith("vocabulary.") for name in names):
        missing.append("vocabulary.txt")
    if missing:
        raise LoadFailedError(
            f"stage {order.stage_id}: its artifact lacks {', '.join(missing)} beside model.bin",
            stage=order.stage_id,
        )
    return folder
