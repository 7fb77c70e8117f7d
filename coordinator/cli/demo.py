"""`coordinator demo`: one request to one of our plans, from nothing to nothing."""

import asyncio
import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator.app.preparation import checkout_root
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.cli.conversation import Conversation
from coordinator.cli.demo_page import Page
from coordinator.cli.demo_state import demo_state
from coordinator.cli.demo_voice import Voice
from coordinator.cli.exhibit import Exhibit
from coordinator.cli.holding import Holding
from coordinator.cli.options import (
    FakeOption,
    RamOption,
    StateOption,
    YesOption,
    new_app,
    quota_bytes,
)
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import program
from coordinator.cli.up import prepare
from stagewire.endpoint import Endpoint, state_option
from stagewire.errors import ExitCode

app = new_app()
_REPLY: Final = "reply.wav"
_FAKE_REPLY: Final = "reply-fake.wav"
_TINY: Final = (
    "The language model is tiny on purpose (135 million parameters): judge the pipeline, not its"
    " wisdom."
)
_PRETENDED: Final = (
    "Every stage was pretended (--fake): no model ran, and no answer means anything."
)


class Name(enum.StrEnum):
    """Which demo; each is a plan of that name."""

    VOICE = "voice"
    PAGE = "page"


@app.command()
def demo(
    name: Annotated[
        Name,
        typer.Argument(
            metavar="[voice|page]",
            help="voice: a spoken question, a spoken answer. page: an image, its text and a label.",
            show_default=False,
        ),
    ] = Name.VOICE,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Recording of a question, or an image; by default one of our samples.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help=f"voice: WAV file for the reply; by default {_REPLY}.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the coordinator up after the answer.")
    ] = False,
    no_speech: Annotated[
        bool,
        typer.Option("--no-speech", help="voice: print the answer only: nothing under the GPL."),
    ] = False,
    play_reply: Annotated[bool, typer.Option("--play", help="voice: play the reply.")] = False,
    ram: RamOption = None,
    yes: YesOption = False,
    fake: FakeOption = False,
    state: StateOption = None,
) -> int:
    """Answer a spoken question aloud, or read an image: the quickest way to see it work.

    Runs a plan of plans/ with a coordinator of its own, and leaves nothing running.
    """
    given = {"--output": output is not None, "--no-speech": no_speech, "--play": play_reply}
    if name is not Name.VOICE:
        _check_silent(
            given,
            f"the demo {name} has no spoken reply; leave it out, or run `{program()} demo voice`",
        )
    elif no_speech:
        _check_silent(
            {**given, "--no-speech": False},
            "there is no spoken reply with --no-speech; leave one of them out",
        )
    screen, plan_path = Screen(), checkout_root() / "plans" / f"{name}.yaml"
    exhibit: Exhibit
    if name is Name.VOICE:
        question = _sample("question.wav") if input_file is None else input_file
        if input_file is None:
            screen.note(f"question: {question} (synthetic: no person said it)")
        # What is pretended takes the place of nothing real.
        reply = output or Path(_FAKE_REPLY if fake else _REPLY)
        exhibit = Voice(plan_path, question, None if no_speech else reply)
        exhibit.is_played = play_reply
    else:
        picture = _sample("page.png") if input_file is None else input_file
        if input_file is None:
            photo = _sample("coffee.png")
            screen.note(f"image: {picture} (another one: --input {photo})")
        exhibit = Page(plan_path, picture)
    with demo_state(state, screen) as folder:
        settings = Settings(
            plan_path,
            folder,
            default_cache_folder(),
            pipelines=(exhibit.pipeline,),
            quota_bytes=quota_bytes(ram),
            is_fake=fake,
        )
        show = Demo(settings, screen, exhibit, folder if state is None else None)
        return show.run(is_agreed=yes, is_kept=keep)


class Demo:
    """One run of a demo."""

    def __init__(
        self, settings: Settings, screen: Screen, exhibit: Exhibit, temporary: Path | None
    ) -> None:
        self._settings = settings
        self._screen = screen
        self._exhibit = exhibit
        self._temporary = temporary

    def run(self, *, is_agreed: bool, is_kept: bool) -> int:
        """Asks for the downloads, holds the conversation, and says what it took."""
        screen = self._screen
        progress = Progress(screen)
        coordinator = prepare(
            self._settings, screen, progress, is_agreed=is_agreed, is_agreed_unasked=True
        )
        holding = Holding(coordinator, screen, progress)
        holding.temporary_folder = self._temporary

        async def serve(endpoint: Endpoint) -> ExitCode:
            talk = Conversation(screen, self._exhibit)
            await talk.hold(endpoint, coordinator)
            talk.show_receipt()
            screen.line(_PRETENDED if self._settings.is_fake else _TINY)
            self._exhibit.finish(screen)
            if is_kept:
                self._tell_how_to_call()
                holding.is_draining_allowed = True
                await coordinator.wait_for_stop()
            return ExitCode.OK

        return asyncio.run(holding.hold(serve))

    def _tell_how_to_call(self) -> None:
        state = state_option(self._settings.state_folder)
        self._screen.line("still running; ask again from another terminal, or stop it with Ctrl-C:")
        self._screen.exact(
            f"  {program()} run{state} --pipeline {self._exhibit.pipeline} {self._exhibit.again}"
        )


def _sample(name: str) -> Path:
    return checkout_root() / "samples" / name


def _check_silent(given: Mapping[str, bool], why: str) -> None:
    """Refuses options of a spoken reply.

    Raises:
        BadParameter: one was given.
    """
    for option, is_given in given.items():
        if is_given:
            raise typer.BadParameter(why, param_hint=option)
