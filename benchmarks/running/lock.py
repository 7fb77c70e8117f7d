"""One run at a time on a machine: a lock in a fixed place of the user."""

import contextlib
import fcntl
import json
import os
import platform
import pwd
import sys
import time
from collections.abc import Iterator
from pathlib import Path


class HeldError(Exception):
    """Another run has the machine."""


def default_path() -> Path:
    """Returns the place of the lock.

    It comes from the user database and not from a variable, which could differ between two runs.
    Homes may be shared by machines, hence the name of this one.
    """
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return home / ".cache" / f"stagewire-bench-{platform.node()}.lock"


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds the lock until the block ends; the system drops it when the process dies.

    Raises:
        HeldError: another run holds it; says which.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(_holder(descriptor)) from None
        note = {
            "pid": os.getpid(),
            "command": " ".join(sys.argv[1:]),
            "since": time.strftime("%H:%M:%S"),
        }
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(note).encode())
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    try:
        note = json.loads(os.pread(descriptor, 4096, 0))
        return (
            f"process {note['pid']} measures since {note['since']} (bench {note['command']});"
            " two runs at once would measure each other"
        )
    except (json.JSONDecodeError, KeyError, TypeError):
        return "another run has the machine; two at once would measure each other"
