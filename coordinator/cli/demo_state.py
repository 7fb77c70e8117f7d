"""The state folder of a demo: its own, gone afterwards; of a demo that fails the logs are kept."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator.app.temporary_state import temporary_state
from coordinator.cli.options import own_folder
from coordinator.cli.screen import Screen
from stagewire.errors import StageError

_LOGS: Final = "demo-logs"
"""Folder of the logs of the last demo that failed, in the user's own state folder."""


@contextlib.contextmanager
def demo_state(chosen: Path | None, screen: Screen) -> Iterator[Path]:
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
