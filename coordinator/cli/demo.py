"""`coordinator demo`: a spoken question goes in, a spoken answer comes out."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from coordinator.app.preparation import checkout_root
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.cli.conversation import Conversation, read_question
from coordinator.cli.holding import Holding
from coordinator.cli.options import FakeOption, StateOption, YesOption, new_app
from coordinator.cli.outputs import check_wav_target
from coordinator.cli.playing import play, windows_spelling
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.up import prepare
from stagewire.endpoint import Endpoint
from stagewire.errors import ExitCode

app = new_app()


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
    yes: YesOption = False,
    fake: FakeOption = False,
    state: StateOption = None,
) -> int:
    """Answer a spoken question aloud: the quickest way to see it work.

    Runs plans/voice.yaml with a coordinator of its own, and leaves nothing running.
    """
    screen = Screen()
    question = checkout_root() / "samples" / "question.wav" if input_file is None else input_file
    with _state(state) as folder:
        settings = Settings(
            checkout_root() / "plans" / "voice.yaml",
            folder,
            default_cache_folder(),
            pipelines=("text" if no_speech else "voice",),
            is_fake=fake,
        )
        if input_file is None:
            screen.line(f"question: {question} (synthetic: no person said it)")
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
        self._screen.line(f"reply: {path}", style="bold green")
        if (windows := windows_spelling(path)) is not None:
            self._screen.line(f"       {windows}")
        if is_played:
            self._screen.line(play(path))

    def _tell_how_to_call(self) -> None:
        pipeline, state = self._settings.pipelines[0], self._settings.state_folder
        output = "" if self._reply is None else " --output reply=again.wav --rate 22050"
        self._screen.line(
            f"still running; ask again from another terminal:\n"
            f"  coordinator run --state {state} --pipeline {pipeline}"
            f" --input audio=@{self._question}{output}\n"
            "stop it with Ctrl-C"
        )


@contextlib.contextmanager
def _state(chosen: Path | None) -> Iterator[Path]:
    """Holds a state folder of the demo's own, removed at the end unless a person named it."""
    if chosen is not None:
        yield chosen.expanduser().absolute()
        return
    with tempfile.TemporaryDirectory(prefix="stagewire-demo-") as folder:
        yield Path(folder)
