"""The endpoint file: where a running coordinator answers, and the tokens that it accepts.

The coordinator writes it when it is ready and removes it when it stops. It lies in the state
folder, readable by its owner alone, because whoever can read it can use the coordinator. Beside it
lies a lock that a coordinator holds as long as it lives: the kernel lets go of it, so that neither
a file that was left nor another process with the same id is taken for a coordinator.
"""

import contextlib
import dataclasses
import json
import os
import re
import secrets
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stagewire.errors import CoordinatorUnreachableError, PathForbiddenError
from stagewire.limits import ENDPOINT_BYTES

FILE_NAME: Final = "endpoint.json"
LOCK_NAME: Final = "lock"
_RANDOM_BYTES: Final = 8
_UNFINISHED: Final = re.compile(rf"\.{re.escape(FILE_NAME)}\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
"""Name of an endpoint file while it is written."""
# Windows has no such flags, and there the folder of the user is what protects the file.
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one coordinator answers."""

    address: str
    """Host and port of the public service."""
    token: str = dataclasses.field(repr=False)
    management_address: str
    management_token: str = dataclasses.field(repr=False)
    pid: int
    plan: str
    """Name of the plan that it runs."""


def default_state_folder() -> Path:
    """Returns $STAGEWIRE_STATE, else the folder `stagewire` below $XDG_STATE_HOME."""
    chosen = os.environ.get("STAGEWIRE_STATE")
    if chosen:
        return without_tilde(Path(chosen))
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore a path that is not absolute.
    root = Path(base) if os.path.isabs(base) else without_tilde(Path("~/.local/state"))
    return root / "stagewire"


def without_tilde(path: Path) -> Path:
    """Returns a path with the home folder that its `~` stands for.

    Raises:
        PathForbiddenError: nobody knows that folder.
    """
    if str(path)[:1] != "~":
        return path
    home = os.environ.get("HOME")
    if str(path)[:2] in ("~", "~/") and home is not None and not os.path.isabs(home):
        raise PathForbiddenError(
            f"HOME is {home!r}, which is no absolute path; set it to your home folder"
        )
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise PathForbiddenError(
            f"the home folder in {str(path)!r} is not known; set HOME, or name the folders with"
            " STAGEWIRE_STATE and STAGEWIRE_CACHE"
        ) from error


def state_option(folder: Path) -> str:
    """Returns the option that names a state folder in a command; nothing for the user's own."""
    try:
        is_own = folder.absolute() == default_state_folder().absolute()
    except PathForbiddenError:
        is_own = False
    return "" if is_own else f" --state {shlex.quote(str(folder.absolute()))}"


def write_endpoint(folder: Path, endpoint: Endpoint) -> Path:
    """Writes the endpoint file at once, never readable by others; replaces an older one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / FILE_NAME
    scratch = folder / f".{FILE_NAME}.{secrets.token_hex(_RANDOM_BYTES)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    try:
        with os.fdopen(os.open(scratch, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(endpoint), file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return path


def remove_endpoint(folder: Path, pid: int) -> None:
    """Removes the endpoint file if that process wrote it, so that a successor keeps its own."""
    with contextlib.suppress(CoordinatorUnreachableError, PathForbiddenError):
        if _read(folder).pid == pid:
            (folder / FILE_NAME).unlink(missing_ok=True)


def remove_left(folder: Path) -> None:
    """Removes the endpoint file of a coordinator that is gone, finished or not, and nothing else.

    Raises:
        OSError: something else lies at its place, such as a folder.
    """
    unfinished = (path for path in folder.iterdir() if _UNFINISHED.fullmatch(path.name))
    for path in (folder / FILE_NAME, *unfinished):
        path.unlink(missing_ok=True)


def is_held(folder: Path) -> bool | None:
    """Whether a coordinator holds a state folder now; None where that cannot be told."""
    if sys.platform == "win32":
        return None
    # There is none on Windows.
    import fcntl

    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | _NO_FOLLOW | _NO_WAIT
        descriptor = os.open(folder / LOCK_NAME, flags)
    except OSError:
        return None
    try:
        # Shared: any number may look at once, and whoever starts meanwhile tries again.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def read_endpoint(folder: Path) -> Endpoint:
    """Returns the endpoint of the coordinator that runs on a state folder.

    Raises:
        CoordinatorUnreachableError: none runs there, or its file cannot be understood.
        PathForbiddenError: the file is not a regular one of this user that is closed to others.
    """
    endpoint = _read(folder)
    if is_held(folder) is False:
        # It may have ended in order between the two looks, and taken the file along.
        endpoint = _read(folder)
        raise CoordinatorUnreachableError(
            f"the coordinator that wrote {folder / FILE_NAME} is not running any more: process"
            f" {endpoint.pid} with the plan {endpoint.plan!r} ended without a word, as when it is"
            f" killed; start it again with `coordinator up --plan FILE{state_option(folder)}`"
        )
    return endpoint


def explain_silence(folder: Path, asked: Endpoint) -> CoordinatorUnreachableError:
    """Returns why the coordinator of an endpoint does not answer, as its state folder shows it."""
    try:
        found = read_endpoint(folder)
    except CoordinatorUnreachableError as error:
        return error
    except PathForbiddenError as error:
        return CoordinatorUnreachableError(f"no coordinator answers; {error.message}")
    if found != asked:
        return CoordinatorUnreachableError(
            f"the coordinator was started again since, as process {found.pid}; what was under way"
            " is lost, so ask again"
        )
    if is_held(folder) is None:
        return CoordinatorUnreachableError(f"no coordinator answers at {asked.address}")
    return CoordinatorUnreachableError(
        # One that is killed lets go of its connections a moment before its lock.
        f"the coordinator of the plan {asked.plan!r}, process {asked.pid}, does not answer at"
        f" {asked.address}: it ends this moment, or hangs; ask again, or end it with `coordinator"
        f" down{state_option(folder)}`"
    )


def _read(folder: Path) -> Endpoint:
    path = folder / FILE_NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
    except FileNotFoundError:
        raise _absent(folder) from None
    except OSError as error:
        raise PathForbiddenError(f"{path} cannot be opened: {error.strerror}") from None
    try:
        _check_owner(path, os.fstat(descriptor))
        raw = os.read(descriptor, ENDPOINT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > ENDPOINT_BYTES:
        raise CoordinatorUnreachableError(f"{path} is over {ENDPOINT_BYTES} bytes; start again")
    try:
        return _from_json(json.loads(raw))
    except (ValueError, TypeError, RecursionError):
        raise CoordinatorUnreachableError(
            f"{path} is not an endpoint file of this version; start the coordinator again"
        ) from None


def _absent(folder: Path) -> CoordinatorUnreachableError:
    if is_held(folder):
        return CoordinatorUnreachableError(
            f"a coordinator that holds the state folder {folder} does not answer: it starts or"
            " stops, and answers from the first start of a worker on"
        )
    return CoordinatorUnreachableError(
        f"no coordinator is running on the state folder {folder}, which has no {FILE_NAME}; start"
        " one with `coordinator up --plan FILE`, or name its state folder"
    )


def _check_owner(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise PathForbiddenError(f"{path} is not a regular file")
    if sys.platform == "win32":
        return
    if status.st_uid != os.geteuid():
        raise PathForbiddenError(f"{path} belongs to another user; name a state folder of your own")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PathForbiddenError(
            f"{path} holds tokens and is open to other users (mode"
            f" {stat.S_IMODE(status.st_mode):04o}); start the coordinator again, which writes new"
            " tokens into a closed file"
        )


def _from_json(content: Any) -> Endpoint:
    # What a file holds is known only after these checks, hence Any.
    fields = {field.name: field.type for field in dataclasses.fields(Endpoint)}
    values: Any = {name: content[name] for name in fields if name in dict(content)}
    if any(type(values.get(name)) is not kind for name, kind in fields.items()):
        raise ValueError
    return Endpoint(**values)
