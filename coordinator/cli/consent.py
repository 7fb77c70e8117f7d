"""Downloads are named with size and licence before they begin, and a person may say no."""

from collections.abc import Sequence
from typing import Final

import typer

from coordinator.app.preparation import Download
from coordinator.cli.screen import Screen
from coordinator.facts.sizes import format_size
from stagewire.client import Table
from stagewire.errors import EnvironmentMissingError

_UNPACKED: Final = 2
"""Bytes on the disk for each that is downloaded, at most; wheels of libraries pack less tightly."""


def ask_for(
    downloads: Sequence[Download], screen: Screen, *, is_agreed: bool, is_agreed_unasked: bool
) -> bool:
    """Shows what has to be fetched, and returns whether it may be.

    `is_agreed_unasked` is the answer where nobody can be asked.

    Raises:
        EnvironmentMissingError: a person said no.
    """
    if not downloads:
        return is_agreed
    rows = [(item.name, format_size(item.size_bytes), item.licence) for item in downloads]
    total_bytes = sum(item.size_bytes for item in downloads)
    total = format_size(total_bytes)
    table = Table(("what", "size", "licence"), (*rows, ("together, at most", total, "")))
    screen.note_table(table, "To be downloaded once:")
    on_disk = format_size(_UNPACKED * total_bytes)
    screen.note(f"On the disk it takes more, as libraries are unpacked: up to {on_disk} in all.")
    if is_agreed or not screen.can_ask:
        return is_agreed or is_agreed_unasked
    if not typer.confirm("Download it?", default=True):
        raise EnvironmentMissingError("it was not downloaded, as you asked")
    return True
