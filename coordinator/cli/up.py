"""`coordinator up`: brings a plan up in the foreground."""

import asyncio
from typing import Annotated

import typer

from coordinator.app.coordinator import Coordinator
from coordinator.app.settings import Settings, default_cache_folder
from coordinator.cli.consent import ask_for
from coordinator.cli.holding import Holding
from coordinator.cli.options import (
    ANY_PORT,
    FakeOption,
    ListenOption,
    PipelinesOption,
    PlanOption,
    RamOption,
    StateOption,
    YesOption,
    new_app,
    quota_bytes,
    state_folder,
)
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.plan.loading import load_plan
from stagewire.endpoint import Endpoint, state_option
from stagewire.errors import ExitCode

app = new_app()


@app.command()
def up(
    plan: PlanOption,
    state: StateOption = None,
    ram: RamOption = None,
    pipeline: PipelinesOption = None,
    yes: YesOption = False,
    fake: FakeOption = False,
    dev: Annotated[
        bool, typer.Option("--dev", help="Run workers from the checkout, not from built wheels.")
    ] = False,
    listen: ListenOption = ANY_PORT,
) -> int:
    """Bring a plan up and keep it up until it is stopped.

    Ctrl-C drains and stops; a second one stops at once. Other commands find it by its state folder.
    """
    settings = Settings(
        plan,
        state_folder(state),
        default_cache_folder(),
        pipelines=tuple(pipeline or ()),
        quota_bytes=quota_bytes(ram),
        is_fake=fake,
        is_dev=dev,
        address=listen,
    )
    return bring_up(settings, Screen(), is_agreed=yes)


def bring_up(settings: Settings, screen: Screen, *, is_agreed: bool) -> int:
    """Asks for what has to be downloaded, then holds a coordinator until it is stopped."""
    progress = Progress(screen)
    coordinator = prepare(settings, screen, progress, is_agreed=is_agreed, is_agreed_unasked=False)
    holding = Holding(coordinator, screen, progress)

    async def serve(endpoint: Endpoint) -> ExitCode:
        holding.is_draining_allowed = True
        screen.exact(f"READY {endpoint.plan} at {endpoint.address}", style="bold green")
        state = state_option(settings.state_folder)
        screen.note(spelled(f"stop it with Ctrl-C or `coordinator down{state}`"))
        await coordinator.wait_for_stop()
        return ExitCode.OK

    code = asyncio.run(holding.hold(serve))
    if coordinator.cut_short:
        screen.note(f"stopped; {coordinator.cut_short} requests were cut short")
    elif coordinator.given_up:
        screen.note(f"stopped; given up by then: {', '.join(coordinator.given_up)}")
    elif code is ExitCode.OK:
        screen.note("stopped")
    return code


def prepare(
    settings: Settings,
    screen: Screen,
    progress: Progress,
    *,
    is_agreed: bool,
    is_agreed_unasked: bool,
) -> Coordinator:
    """Returns a coordinator that may fetch what was agreed to.

    Raises:
        StageError: the plan is refused, or a person said no to the downloads.
    """
    coordinator = Coordinator(settings, load_plan(settings.plan_path), progress.note)
    is_allowed = ask_for(
        coordinator.downloads(), screen, is_agreed=is_agreed, is_agreed_unasked=is_agreed_unasked
    )
    coordinator.preparation.is_download_allowed = is_allowed
    return coordinator
