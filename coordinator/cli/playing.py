"""Playing a reply, and how Windows spells its path."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

_PLAYERS: Final = (
    ("paplay",),
    ("aplay", "-q"),
    ("pw-play",),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "error"),
)
_SPELLING_SECONDS: Final = 10.0


def play(path: Path) -> str:
    """Plays a WAV file with the first player that this machine has; returns what happened."""
    for name, *arguments in _PLAYERS:
        found = shutil.which(name)
        if found is None:
            continue
        ended = subprocess.run(
            [found, *arguments, str(path)], capture_output=True, text=True, check=False
        )
        if ended.returncode == 0:
            return f"played with {name}"
        lines = ended.stderr.strip().splitlines() or ["no message"]
        return f"{name} could not play it: {lines[-1]}"
    names = ", ".join(name for name, *_ in _PLAYERS)
    return f"no player found; install one of {names}"


def windows_spelling(path: Path) -> str | None:
    """Returns the path as Windows spells it; None outside of the Windows Subsystem for Linux."""
    found = shutil.which("wslpath")
    if found is None:
        return None
    try:
        answer = subprocess.run(
            [found, "-w", str(path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=_SPELLING_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
