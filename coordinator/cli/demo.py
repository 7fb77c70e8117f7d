"""`coordinator demo`: a spoken question goes in, a spoken answer comes out."""

import asyncio
import contextlib
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator.app.preparation import checkout_root
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.app.temporary_state import temporary_state
from coordinator.cli.conversation import Conversation, read_question
from coordinator.cli.holding import Holding
from coordinator.cli.options import (
    FakeOption,
    RamOption,
    StateOption,
    YesOption,
    new_app,
    own_folder,
    quota_bytes,
)
from coordinator.cli.outputs import check_wav_target
from coordinator.cli.playing import play, windows_spelling
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import program, state_option
from coordinator.cli.up import prepare
from stagewire.endpoint import Endpoint
from stagewire.errors import ExitCode, StageError

app = new_app()
_LOGS: Final = "demo-logs"
"""Folder of the logs of the last demo that failed, in the user's own state folder."""


@app.command()
def demo(
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="WAV file with a question; by default a synthetic one.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", help="WAV file for the reply.")] = Path(
        "reply.wav"
    ),
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the coordinator up after the reply.")
    ] = False,
    no_speech: Annotated[
        bool, typer.Option("--no-speech", help="Print the answer only: nothing under the GPL.")
    ] = False,
    play_reply: Annotated[bool, typer.Option("--play", help="Play the reply.")] = False,
    ram: RamOption = None,
    yes: YesOption = False,
    fake: FakeOption = False,
    state: StateOption = None,
) -> int:
    """Answer a spoken question aloud: the quickest way to see it work.

    Runs plans/voice.yaml with a coordinator of its own, and leaves nothing running.
    """
    screen = Screen()
    question = checkout_root() / "samples" / "question.wav" if input_file is None else input_file
    with _state(state, screen) as folder:
        settings = Settings(
            checkout_root() / "plans" / "voice.yaml",
            folder,
            default_cache_folder(),
            pipelines=("text" if no_speech else "voice",),
            quota_bytes=quota_bytes(ram),
            is_fake=fake,
        )
        if input_file is None:
            screen.note(f"question: {question} (synthetic: no person said it)")
        own_folder = folder if state is None else None
        show = Demo(settings, screen, question, None if no_speech else output, own_folder)
        return show.run(is_agreed=yes, is_kept=keep, is_played=play_reply)


class Demo:
    """One run of the demo."""

    def __init__(
        self,
        settings: Settings,
        screen: Screen,
        question: Path,
        reply: Path | None,
        own_folder: Path | None,
    ) -> None:
        self._settings = settings
        self._screen = screen
        self._question = question
        self._reply = reply
        self._own_folder = own_folder

    def run(self, *, is_agreed: bool, is_kept: bool, is_played: bool) -> int:
        """Asks for the downloads, holds the conversation, and says what it took."""
        screen, settings = self._screen, self._settings
        inputs = read_question(self._question, settings.plan_path)
        if self._reply is not None:
            check_wav_target(self._reply)
        progress = Progress(screen)
        coordinator = prepare(
            settings, screen, progress, is_agreed=is_agreed, is_agreed_unasked=True
        )
        holding = Holding(coordinator, screen, progress)
        holding.own_folder = self._own_folder

        async def serve(endpoint: Endpoint) -> ExitCode:
            talk = Conversation(screen, settings.pipelines[0], inputs)
            await talk.hold(endpoint, coordinator)
            self._finish(talk, is_played=is_played)
            if is_kept:
                self._tell_how_to_call()
                holding.is_draining_allowed = True
                await coordinator.wait_for_stop()
            return ExitCode.OK

        return asyncio.run(holding.hold(serve))

    def _finish(self, talk: Conversation, *, is_played: bool) -> None:
        talk.show_receipt()
        self._screen.line(
            "The language model is tiny on purpose (135 million parameters):"
            " judge the pipeline, not its wisdom."
        )
        if self._reply is None:
            return
        talk.write(self._reply)
        path = self._reply.absolute()
        self._screen.exact(f"reply: {path}", style="bold green")
        if (windows := windows_spelling(path)) is not None:
            self._screen.exact(f"       {windows}")
        if is_played:
            self._screen.line(play(path))

    def _tell_how_to_call(self) -> None:
        pipeline, state = self._settings.pipelines[0], state_option(self._settings.state_folder)
        question = shlex.quote(f"audio=@{self._question}")
        output = "" if self._reply is None else " --output reply=again.wav --rate 22050"
        self._screen.line("still running; ask again from another terminal, or stop it with Ctrl-C:")
        self._screen.exact(
            f"  {program()} run{state} --pipeline {pipeline} --input {question}{output}"
        )


@contextlib.contextmanager
def _state(chosen: Path | None, screen: Screen) -> Iterator[Path]:
    """Holds a state folder of the demo's own, removed at the end unless a person named it.

    Of a demo that fails, the logs are kept elsewhere.
    """
    if chosen is not None:
        yield chosen.expanduser().absolute()
        return
    with temporary_state("stagewire-demo-") as folder:
        try:
            yield folder
        except Exception as error:
            _keep_logs(folder / "logs", error, screen)
            raise


def _keep_logs(logs: Path, error: Exception, screen: Screen) -> None:
    """Copies the logs of a failed demo into the user's own state folder, over the last ones."""
    if not logs.is_dir():
        return
    try:
        kept = own_folder(_LOGS)
        shutil.rmtree(kept)
        shutil.copytree(logs, kept)
    except OSError as failure:
        screen.note(f"the logs of this demo could not be kept: {failure.strerror or failure}")
        return
    screen.note(f"the logs of this demo are kept in {kept}")
    if isinstance(error, StageError):
        # The folder that it names goes with the demo.
        error.message = error.message.replace(str(logs), str(kept))
        notes = getattr(error, "__notes__", ())
        error.__notes__ = [note.replace(str(logs), str(kept)) for note in notes]
