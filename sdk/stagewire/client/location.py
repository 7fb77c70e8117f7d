"""Where the coordinator is: at an address that was given, or where its endpoint file says."""

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from stagewire.endpoint import FILE_NAME, Endpoint, explain_silence, read_endpoint
from stagewire.errors import CoordinatorUnreachableError


class Place(NamedTuple):
    """Where one run of a coordinator answers, and the token that it accepts."""

    address: str
    token: str


class Location(Protocol):
    """Where to call."""

    def here(self) -> Place:
        """Returns where the coordinator is now; another one after it was started again.

        Raises:
            CoordinatorUnreachableError: what runs there now is not what was asked for.
            PathForbiddenError: the endpoint file is not closed to other users.
        """

    def silence(self, place: Place, message: str) -> CoordinatorUnreachableError:
        """Returns why there is no answer at a place; `message` is what is known without looking."""


class GivenLocation:
    """An address and a token; one run of a coordinator."""

    def __init__(self, address: str, token: str) -> None:
        self._place = Place(address, token)

    def here(self) -> Place:
        """Returns what was given."""
        return self._place

    def silence(self, _place: Place, message: str) -> CoordinatorUnreachableError:
        """Knows no more."""
        return CoordinatorUnreachableError(message)


class StateFolder:
    """A state folder: each run of a coordinator writes a new endpoint file there.

    A look at the file's identity tells whether there is another run; the file is read only then.
    """

    def __init__(self, folder: Path, plan: str | None) -> None:
        self._folder = folder
        self._plan = plan
        self._seen = self._identity()
        self._endpoint = self._read()

    def here(self) -> Place:
        """Returns where the run answers that wrote the file."""
        identity = self._identity()
        # Without a file the last one may still answer, and if not, `silence` says why.
        if identity is not None and identity != self._seen:
            self._endpoint = self._read()
            self._seen = identity
        return Place(self._endpoint.address, self._endpoint.token)

    def silence(self, place: Place, message: str) -> CoordinatorUnreachableError:
        """Says what the folder shows of the coordinator that does not answer."""
        endpoint = self._endpoint
        if place != (endpoint.address, endpoint.token):
            return CoordinatorUnreachableError(
                f"{message}: the coordinator was started again since; ask again"
            )
        return explain_silence(self._folder, endpoint)

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._folder / FILE_NAME)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> Endpoint:
        endpoint = read_endpoint(self._folder)
        if self._plan is not None and self._plan != endpoint.plan:
            raise CoordinatorUnreachableError(
                f"the coordinator there runs the plan {endpoint.plan!r}, not {self._plan!r};"
                " name the state folder of the other one",
                plan=endpoint.plan,
            )
        return endpoint
