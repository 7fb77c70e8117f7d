"""Executor `speech`: sentences to audio with a Piper voice."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ortkit import Session, SessionSettings, open_session
from stagewire.errors import EnvironmentBrokenError, FieldInvalidError, LoadFailedError
from stagewire.playback import Playback
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Capability, Execution, Progress, StageOrder
from stagewire.worker.order import (
    OptionReader,
    PortRule,
    check_format,
    check_ports,
    find_port,
    library_capability,
    library_text,
    single_file,
)
from worker_speech.ramp import Speed, cut, most_characters

FORMATS: Final = ("onnx:fp32",)
INPUTS: Final = (PortRule("text", DataType.UTF8),)
OUTPUTS: Final = (
    PortRule("audio", DataType.INT16, ranks=(1,), is_stream=True),
    PortRule("rate", DataType.INT32, is_stream=False, is_required=False),
)
_PHONEME_TYPES: Final = ("espeak", "text")
"""Others need packages that are not in this environment, or files that the library would fetch."""


class SpeechExecutor:
    """Runs Piper voices with ONNX Runtime."""

    name = "speech"

    def describe(self) -> Sequence[Capability]:
        """Says whether piper-tts is installed."""
        return [library_capability(self.name, FORMATS, "piper-tts", "piper")]

    def load(self, order: StageOrder, progress: Progress) -> "SpeechStage":
        """Opens the voice."""
        check_format(order, FORMATS)
        check_ports(order, INPUTS, OUTPUTS)
        options = OptionReader(order)
        model, described = single_file(order, ".onnx"), _read_config(order)
        progress("importing piper")
        try:
            from piper.config import PiperConfig, SynthesisConfig
            from piper.voice import PiperVoice
        except ImportError as error:
            raise EnvironmentBrokenError(
                f"piper-tts cannot be imported: {library_text(error)}"
            ) from error
        try:
            config = PiperConfig.from_dict(described)
        except (KeyError, TypeError, ValueError) as error:
            raise LoadFailedError(
                f"stage {order.stage_id}: the voice's .onnx.json is not one of Piper:"
                f" look at {library_text(error)}"
            ) from error
        _check_config(order, options, config)
        speaker = options.integer("speaker", 0, low=0, high=max(config.num_speakers - 1, 0))
        synthesis = SynthesisConfig(
            speaker_id=speaker if config.num_speakers > 1 else None,
            length_scale=options.number("length_scale", config.length_scale, low=0.25, high=4.0),
            noise_scale=options.number("noise_scale", config.noise_scale, low=0.0, high=2.0),
            noise_w_scale=options.number("noise_w_scale", config.noise_w_scale, low=0.0, high=2.0),
            volume=options.number("volume", 1.0, low=0.0, high=4.0),
        )
        # Piper would open the graph with as many threads as there are cores.
        settings = SessionSettings(
            intra_op_threads=order.thread_count,
            keeps_memory=options.flag("keep_memory", default=False),
            seed=options.integer("seed", 0, low=0, high=(1 << 31) - 1),
        )
        first_seconds = options.number("first_seconds", 0.0, low=0.0, high=60.0)
        options.finish()
        progress("opening the voice")
        session = open_session(model, order.files, settings)
        voice = PiperVoice(
            session=session.library_session, config=config, download_dir=model.parent
        )
        return SpeechStage(order, session, voice, synthesis, first_seconds)

    def close(self) -> None:
        """Holds nothing of its own."""


class SpeechStage:
    """One voice: each text becomes one audio item, or more where a ramp or its port wants less."""

    # `voice` and `synthesis` are a PiperVoice and a SynthesisConfig, whose library has no types.
    def __init__(
        self,
        order: StageOrder,
        session: Session,
        voice: Any,
        synthesis: Any,
        first_seconds: float,
    ) -> None:
        self._session = session
        self._voice = voice
        self._synthesis = synthesis
        self._first_seconds = first_seconds
        self._speed = Speed()
        self._sends_rate = find_port(order.outputs, "rate") is not None
        audio = next(port for port in order.outputs if port.name == "audio")
        self._most_samples = audio.dimensions[0].max_extent

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from the session."""
        return self._session.thread_settings

    @property
    def sample_rate(self) -> int:
        """Samples a second of the voice."""
        return int(self._voice.config.sample_rate)

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns one word."""
        return {"text": ["Hello."]}

    def run(self, execution: Execution) -> None:
        """Speaks each text as soon as it comes, in pieces while little was spoken before."""
        if self._sends_rate:
            execution.send("rate", np.array(self.sample_rate, dtype=np.int32))
        playback = Playback(self.sample_rate)
        for text in execution.items("text"):
            rest = str(text)
            while rest:
                piece, rest = self._next_piece(rest, playback)
                for audio in self._speak(piece):
                    execution.send("audio", audio)
                    playback.add(len(audio), time.monotonic())

    def _next_piece(self, text: str, playback: Playback) -> tuple[str, str]:
        if not self._first_seconds:
            return text, ""
        slack = playback.slack(time.monotonic())
        return cut(text, most_characters(self._speed, slack, self._first_seconds))

    def _speak(self, text: str) -> Iterator[Array]:
        began, busy_seconds, sample_count = time.monotonic(), 0.0, 0
        for chunk in self._voice.synthesize(text, self._synthesis):
            busy_seconds += time.monotonic() - began
            samples: Array = chunk.audio_int16_array
            sample_count += len(samples)
            for start in range(0, len(samples), self._most_samples):
                yield samples[start : start + self._most_samples]
            # Whoever takes a piece may wait for its turn; that is not the voice's time.
            began = time.monotonic()
        if sample_count:
            seconds = sample_count / self.sample_rate
            self._speed = self._speed.after(len(text.strip()), seconds, busy_seconds)

    def release(self) -> None:
        """Closes the voice."""
        self._voice = None
        self._session.close()


def _read_config(order: StageOrder) -> Mapping[str, Any]:  # JSON of a Piper voice
    path: Path = single_file(order, ".onnx.json")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LoadFailedError(f"stage {order.stage_id}: {path.name} is not JSON") from error
    if not isinstance(config, dict):
        raise LoadFailedError(f"stage {order.stage_id}: {path.name} is not a JSON object")
    return config


def _check_config(order: StageOrder, options: OptionReader, config: Any) -> None:  # a PiperConfig
    if config.phoneme_type.value not in _PHONEME_TYPES:
        raise LoadFailedError(
            f"stage {order.stage_id}: the voice wants phonemes of type"
            f" {config.phoneme_type.value!r}; this worker has {', '.join(_PHONEME_TYPES)}"
        )
    stated = options.integer("sample_rate", config.sample_rate, low=1, high=384_000)
    if stated != config.sample_rate:
        raise FieldInvalidError(
            f"stage {order.stage_id}: option 'sample_rate' is {stated};"
            f" the voice speaks at {config.sample_rate}",
            stage=order.stage_id,
            option="sample_rate",
        )
