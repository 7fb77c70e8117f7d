"""Function `segment_voice`: audio to segments of speech, by the Silero voice model.

The model sees windows of 32 ms with the end of the window before, and carries a state of its own
from one to the next; both begin anew with each execution.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ortkit import Session, SessionSettings, open_session
from stagewire.errors import FieldInvalidError, LoadFailedError
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule, single_file
from worker_cpu.functions.function import Function
from worker_cpu.functions.segmenter import Segmenter, SegmenterSettings

SAMPLE_RATE: Final = 16_000
WINDOW: Final = 512
"""Samples of one step of the model."""
CONTEXT: Final = 64
"""Samples of the window before that the model sees again."""
_STATE_SHAPE: Final = (2, 1, 128)
_INPUTS: Final = {"input", "state", "sr"}
_OUTPUTS: Final = ("output", "stateN")
_WINDOW_MILLISECONDS: Final = 1000 * WINDOW // SAMPLE_RATE


class VoiceModel:
    """The model over one signal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._state: Value = np.zeros(_STATE_SHAPE, dtype=np.float32)
        self._context = np.zeros(CONTEXT, dtype=np.float32)
        self._rate = np.array(SAMPLE_RATE, dtype=np.int64)

    def probability(self, window: Array) -> float:
        """Returns the probability of voice in the next window."""
        heard = np.concatenate([self._context, window])[None, :]
        output, self._state = self._session.run(
            _OUTPUTS, {"input": heard, "state": self._state, "sr": self._rate}
        )
        self._context = window[-CONTEXT:]
        return float(np.asarray(output).item())


class SegmentVoiceStage:
    """Sends each segment of speech as soon as it closes."""

    def __init__(self, session: Session, settings: SegmenterSettings) -> None:
        self._session = session
        self._settings = settings

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from the session."""
        return self._session.thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns a tenth of a second of silence."""
        return {"audio": [np.zeros(SAMPLE_RATE // 10, dtype=np.float32)]}

    def run(self, execution: Execution) -> None:
        """Walks through the audio window by window."""
        model = VoiceModel(self._session)
        segmenter = Segmenter(self._settings)
        for window in _windows(execution):
            execution.check()
            segment = segmenter.push(window, model.probability(window))
            if segment is not None:
                execution.send("speech", segment)
        segment = segmenter.finish()
        if segment is not None:
            execution.send("speech", segment)

    def release(self) -> None:
        """Closes the session."""
        self._session.close()


def _windows(execution: Execution) -> Iterator[Array]:
    """Yields whole windows across the borders of items; the last one is filled with silence."""
    rest = np.zeros(0, dtype=np.float32)
    for item in execution.items("audio"):
        audio = np.concatenate([rest, np.asarray(item)])
        whole = len(audio) - len(audio) % WINDOW
        for start in range(0, whole, WINDOW):
            yield audio[start : start + WINDOW]
        rest = audio[whole:]
    if rest.size:
        yield np.pad(rest, (0, WINDOW - rest.size))


def read_settings(order: StageOrder) -> SegmenterSettings:
    """Returns the options of a stage.

    Raises:
        FieldInvalidError: one is unknown or out of range, or they contradict each other.
    """
    options = OptionReader(order)
    threshold = options.number("threshold", 0.5, low=0.05, high=0.95)
    settings = SegmenterSettings(
        threshold=threshold,
        release_threshold=options.number(
            "release_threshold", max(threshold - 0.15, 0.01), low=0.01, high=0.95
        ),
        min_speech=_read_windows(options, "min_speech_ms", 250, low=32, high=5_000),
        min_silence=_read_windows(options, "min_silence_ms", 600, low=32, high=10_000),
        padding=_read_windows(options, "padding_ms", 200, low=0, high=2_000),
        max_segment=_read_windows(options, "max_segment_ms", 30_000, low=1_000, high=600_000),
    )
    options.finish()
    if settings.release_threshold > settings.threshold:
        raise FieldInvalidError(
            f"stage {order.stage_id}: option 'release_threshold' must not be over 'threshold'"
        )
    speech = next(port for port in order.outputs if port.name == "speech")
    longest = speech.dimensions[0].max_extent // WINDOW
    if longest < settings.max_segment:
        raise FieldInvalidError(
            f"stage {order.stage_id}: a segment may have {settings.max_segment * WINDOW} samples"
            f" and port 'speech' takes {speech.dimensions[0].max_extent};"
            f" set the option 'max_segment_ms' to {longest * _WINDOW_MILLISECONDS} or less"
        )
    return settings


def _read_windows(options: OptionReader, name: str, default: int, *, low: int, high: int) -> int:
    return options.integer(name, default, low=low, high=high) // _WINDOW_MILLISECONDS


def _load(order: StageOrder, progress: Progress) -> SegmentVoiceStage:
    settings = read_settings(order)
    model = single_file(order, ".onnx")
    progress("opening the voice model")
    session = open_session(model, order.files, SessionSettings(intra_op_threads=order.thread_count))
    names = {port.name for port in session.inputs}
    if names != _INPUTS or not {port.name for port in session.outputs}.issuperset(_OUTPUTS):
        raise LoadFailedError(
            f"stage {order.stage_id}: {model.name} is not a Silero voice model with the inputs"
            f" {', '.join(sorted(_INPUTS))}",
            stage=order.stage_id,
        )
    return SegmentVoiceStage(session, settings)


SEGMENT_VOICE: Final = Function(
    name="segment_voice",
    inputs=(PortRule("audio", DataType.FLOAT32, ranks=(1,)),),
    outputs=(PortRule("speech", DataType.FLOAT32, ranks=(1,), is_stream=True),),
    load=_load,
    formats=("onnx:fp32",),
)
