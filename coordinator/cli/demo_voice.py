"""The demo `voice`: a spoken question goes in, a spoken answer comes out."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from coordinator.cli.exhibit import Piece
from coordinator.cli.outputs import check_wav_target, write
from coordinator.cli.playing import play, windows_spelling
from coordinator.cli.screen import Screen
from coordinator.facts.ids import PortId, StageId
from coordinator.plan.loading import load_plan
from stagewire.client import Output, audio
from stagewire.errors import MediaInvalidError, PathForbiddenError
from stagewire.tensor import Value

REPLY_RATE: Final = 22_050
"""Samples a second of the voice of `plans/voice.yaml`."""
_HEARING_RATE: Final = 16_000
"""Samples a second that the stage `resample` gives."""
_REPLY: Final = "reply"


class Voice:
    """Implements `Exhibit`. Without a file for the reply, nothing is spoken."""

    first = (_REPLY, "audio")

    def __init__(self, plan_path: Path, question: Path, reply: Path | None) -> None:
        self.pipeline = "text" if reply is None else "voice"
        self.inputs = read_question(question, plan_path)
        self.is_played = False
        self._question = question
        self._target = reply
        self._heard = ""
        self._reply: list[Value] = []
        if reply is not None:
            check_wav_target(reply)
            if reply.exists() and question.exists() and reply.samefile(question):
                raise PathForbiddenError(
                    "the reply would take the place of the question; name another file"
                )

    def take(self, output: Output) -> Iterable[Piece]:
        """Keeps what is spoken; returns what is written."""
        if output.port == _REPLY:
            self._reply.append(output.value)
            return
        text = str(output.value)
        if output.port == "heard":
            self._heard += text
        yield output.port, text

    def conclude(self, screen: Screen) -> None:
        """Checks that there was a question.

        Raises:
            MediaInvalidError: nobody speaks in the recording.
        """
        if not self._heard.strip():
            raise MediaInvalidError("nobody speaks in the recording; record a spoken question")

    def finish(self, screen: Screen) -> None:
        """Writes the spoken reply, and plays it if that is wanted.

        Raises:
            DiskFullError: the file cannot be written.
        """
        if self._target is None:
            return
        write(self._target, self._reply, REPLY_RATE)
        path = self._target.absolute()
        screen.exact(f"reply: {path}", style="bold green")
        if (windows := windows_spelling(path)) is not None:
            screen.exact(f"       {windows}")
        if self.is_played:
            screen.line(play(path))

    @property
    def again(self) -> str:
        """Options of `coordinator run` that ask the same again."""
        question = shlex.quote(f"audio=@{self._question}")
        output = "" if self._target is None else f" --output {_REPLY}=again.wav --rate {REPLY_RATE}"
        return f"--input {question}{output}"


def read_question(path: Path, plan_path: Path) -> Mapping[str, Value]:
    """Returns the inputs of a spoken question; nothing has been started by then.

    Raises:
        MediaInvalidError: it is no audio, empty, or longer than the plan takes.
    """
    inputs: dict[str, Value] = dict(audio(path))
    samples, rate = np.size(inputs["audio"]), int(np.asarray(inputs["rate"]))
    resample = load_plan(plan_path).plan.stages[StageId("resample")]
    taken = resample.inputs[PortId("audio")].shape[0].max_extent / rate
    heard = resample.outputs[PortId("audio")].shape[0].max_extent / _HEARING_RATE
    limit = min(taken, heard)
    if samples > limit * rate:
        raise MediaInvalidError(
            f"{path.name} is {samples / rate:.1f} s long; the plan takes {limit:.0f} s at its rate"
            f" of {rate} Hz; cut it"
        )
    return inputs
