"""The state folder of a coordinator: held by one at a time, with its endpoint file and its logs."""

import fcntl
import os
import shlex
import stat
import time
from pathlib import Path
from typing import Final

from coordinator.artifacts.trouble import failure_of_machine, limit_reached
from stagewire import endpoint
from stagewire.endpoint import LOCK_NAME, Endpoint, remove_endpoint, write_endpoint
from stagewire.errors import DiskFullError, PathForbiddenError, StateHeldError

LOGS_NAME: Final = "logs"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_PATIENCE_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 0.02


def _take(descriptor: int) -> None:
    """Takes the lock; the kernel lets go of it when this process ends, however it ends.

    Raises:
        BlockingIOError: another process holds it, not just for a look.
    """
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)


class StateFolder:
    """A folder that this process holds from `__enter__` to `__exit__`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> "StateFolder":
        """Makes and holds the folder, and removes what a killed coordinator left in it.

        Raises:
            StateHeldError: another coordinator holds it.
            PathForbiddenError: it cannot be written, or is not this user's alone.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._require_private()
            self.logs.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self.path / LOCK_NAME, flags, 0o600)
        except OSError as error:
            if (failure := failure_of_machine(error)) is not None:
                raise failure from error
            raise PathForbiddenError(
                f"the state folder {self.path} cannot be used: {error.strerror}; name another"
                " with --state"
            ) from error
        try:
            _take(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            self._descriptor = None
            raise StateHeldError(
                f"another coordinator holds the state folder {self.path}; stop it with"
                f" `coordinator down{endpoint.state_option(self.path)}`, or name another folder"
                " with --state"
            ) from error
        try:
            # Whoever reads it while this one starts must not look for the one that was killed.
            endpoint.remove_left(self.path)
        except OSError as error:
            os.close(self._descriptor)
            self._descriptor = None
            raise PathForbiddenError(
                f"{self.path / endpoint.FILE_NAME} is none of a coordinator's and stays"
                f" ({error.strerror}); move it away, or name another folder with --state"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the endpoint file and lets go of the folder."""
        remove_endpoint(self.path, os.getpid())
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _require_private(self) -> None:
        """Closes the folder to others, or refuses one that was not made for this."""
        found = self.path.stat()
        if found.st_uid != os.geteuid():
            raise PathForbiddenError(
                f"the state folder {self.path} belongs to another user, who could read its tokens;"
                " name another with --state"
            )
        if not found.st_mode & _OTHERS:
            return
        if not (self.path / LOCK_NAME).is_file():
            raise PathForbiddenError(
                f"the state folder {self.path} is open to other users; close it with"
                f" `chmod 700 {shlex.quote(str(self.path))}`, or name another with --state"
            )
        # A coordinator made it and it was opened since: nothing but a coordinator's lies in it.
        self.path.chmod(0o700)

    @property
    def logs(self) -> Path:
        """Folder of the logs of the workers."""
        return self.path / LOGS_NAME

    def publish(self, published: Endpoint) -> None:
        """Says where this coordinator answers.

        Raises:
            DiskFullError: the file cannot be written.
        """
        try:
            write_endpoint(self.path, published)
        except OSError as error:
            if (limit := limit_reached(error)) is not None:
                raise limit from error
            raise DiskFullError(
                f"the endpoint file in {self.path} cannot be written: {error.strerror}"
            ) from error
