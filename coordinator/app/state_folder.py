"""The state folder of a coordinator: held by one at a time, with its endpoint file and its logs."""

import fcntl
import os
from pathlib import Path
from typing import Final

from stagewire.endpoint import FILE_NAME, Endpoint, remove_endpoint, write_endpoint
from stagewire.errors import DiskFullError, PathForbiddenError, StateHeldError

_LOCK: Final = "lock"


def is_held(path: Path) -> bool:
    """Whether a coordinator holds a state folder now."""
    try:
        descriptor = os.open(path / _LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class StateFolder:
    """A folder that this process holds from `__enter__` to `__exit__`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> "StateFolder":
        """Makes and holds the folder, and removes what a killed coordinator left in it.

        Raises:
            StateHeldError: another coordinator holds it.
            PathForbiddenError: it cannot be written.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self._descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise PathForbiddenError(
                f"the state folder {self.path} cannot be used: {error.strerror}; name another"
                " with --state"
            ) from error
        try:
            # The kernel lets go of it when this process ends, however it ends.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            self._descriptor = None
            raise StateHeldError(
                f"another coordinator holds the state folder {self.path}; stop it with"
                " `coordinator down`, or name another folder with --state"
            ) from error
        # Whoever reads it while this one starts must not look for the one that was killed.
        (self.path / FILE_NAME).unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the endpoint file and lets go of the folder."""
        remove_endpoint(self.path, os.getpid())
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def logs(self) -> Path:
        """Folder of the logs of the workers."""
        return self.path / "logs"

    def publish(self, endpoint: Endpoint) -> None:
        """Says where this coordinator answers.

        Raises:
            DiskFullError: the file cannot be written.
        """
        try:
            write_endpoint(self.path, endpoint)
        except OSError as error:
            raise DiskFullError(
                f"the endpoint file in {self.path} cannot be written: {error.strerror}"
            ) from error
