"""Environments on the disk: where they lie, what says that one is whole, what is removed."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator.artifacts.trouble import naming_trouble
from coordinator.reach.attestation import damaged_distributions, record_digests
from coordinator.reach.locking_linux import is_shared, sharing

_MARKER: Final = "stagewire-environment.json"
USE_LOCK: Final = ".in-use"
"""File in an environment that is locked for as long as somebody runs workers in it."""
_NAME_LENGTH: Final = 20
"""Digits of the key in the name of its folder; the marker holds all of them."""
_KEPT_PREVIOUS: Final = 1
_BUILDING: Final = ".building-"
_REMOVING: Final = ".removing-"


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that a worker can be started in."""

    python: Path
    """Interpreter as it is started; never resolved, as that would leave the environment."""
    key: str
    """Empty for an interpreter that the plan names."""
    worker_module: str
    folder: Path
    distributions: Mapping[str, str]
    """What a worker must attest: SHA-256 of the RECORD by the name of the distribution."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps it from being replaced until the block ends. One that somebody else made is his.

        Raises:
            PathForbiddenError: it is gone, or may not be used.
        """
        with ExitStack() as held:
            if self.key:
                with naming_trouble(self.folder):
                    held.enter_context(sharing(self.folder / USE_LOCK))
            yield


class EnvironmentFolder:
    """One environment on the disk. Its marker is written last: without one it is unfinished."""

    def __init__(self, path: Path, python_version: str) -> None:
        self.path = path
        self.python = path / "bin" / "python"
        short_version = ".".join(python_version.split(".")[:2])
        self._site = path / "lib" / f"python{short_version}" / "site-packages"

    def mark_built(self, key: str, projects: Iterable[str]) -> None:
        """Says that everything is installed and nothing has been imported yet."""
        marker = {
            "key": key,
            "installed": sorted(self._installed()),
            "distributions": record_digests(self._site, projects),
            "is_checked": False,
        }
        self._write(marker)

    def mark_checked(self, is_checked: bool) -> None:
        """Says whether its libraries can be imported."""
        self._write({**self._read(), "is_checked": is_checked})

    def forget(self) -> None:
        """Makes it count as unfinished."""
        (self.path / _MARKER).unlink(missing_ok=True)

    def is_whole(self, key: str) -> bool:
        """Says whether its build ran to the end and nothing that it left was removed since."""
        marker = self._read()
        if marker.get("key") != key or not os.access(self.python, os.X_OK):
            return False
        expected = marker["distributions"]
        return self._installed().issuperset(marker["installed"]) and (
            record_digests(self._site, expected) == expected
        )

    def damaged(self) -> list[str]:
        """Returns the distributions that have another file than they were installed with."""
        return damaged_distributions(self._site)

    def is_ready(self, key: str) -> bool:
        """Says whether it is whole and its libraries were imported once."""
        return self.is_whole(key) and bool(self._read()["is_checked"])

    def environment(self, worker_module: str) -> Environment:
        """Returns it as something to start a worker in; it must be whole."""
        marker = self._read()
        return Environment(
            python=self.python,
            key=marker["key"],
            worker_module=worker_module,
            folder=self.path,
            distributions=marker["distributions"],
        )

    def _installed(self) -> set[str]:
        return {each.name for each in self._site.glob("*.dist-info")}

    def _read(self) -> Mapping[str, Any]:
        """Returns the marker (JSON values, hence Any); empty when none can be read."""
        try:
            marker = json.loads((self.path / _MARKER).read_bytes())
        except (OSError, ValueError):
            return {}
        return marker if isinstance(marker, dict) else {}

    def _write(self, marker: Mapping[str, Any]) -> None:
        written = self.path / f"{_MARKER}.part"
        written.write_text(json.dumps(marker, indent=1))
        written.replace(self.path / _MARKER)


class EnvironmentShelf:
    """The environments of one worker. Who changes it holds the lock at `lock_path`."""

    def __init__(self, path: Path, python_version: str) -> None:
        self.path = path
        self.lock_path = path / ".lock"
        self._python_version = python_version

    def folder(self, key: str) -> EnvironmentFolder:
        """Returns the folder of a key, whether it exists or not."""
        return EnvironmentFolder(self.path / key[:_NAME_LENGTH], self._python_version)

    @contextmanager
    def building(self, key: str) -> Iterator[EnvironmentFolder]:
        """Gives a new folder to build in; afterwards it is in its place, or gone if that failed."""
        building = self._begin(key)
        try:
            yield building
            self._place(building, key)
        except BaseException:
            # At once: it may be what filled the disk.
            shutil.rmtree(building.path, ignore_errors=True)
            raise

    def _begin(self, key: str) -> EnvironmentFolder:
        """Clears what killed builds left and returns a new folder to build in."""
        for pattern in (f"{_BUILDING}*", f"{_REMOVING}*"):
            for rest in self.path.glob(pattern):
                # A tool that outlived its coordinator may still write there.
                shutil.rmtree(rest, ignore_errors=True)
        building = tempfile.mkdtemp(prefix=f"{_BUILDING}{key[:_NAME_LENGTH]}-", dir=self.path)
        return EnvironmentFolder(Path(building), self._python_version)

    def _place(self, built: EnvironmentFolder, key: str) -> None:
        """Puts a finished build where `folder` finds it; removes all but one older environment."""
        folder = self.folder(key).path
        self._remove(folder)
        built.path.rename(folder)
        others = [
            each
            for each in self.path.iterdir()
            if each.is_dir() and each != folder and not each.name.startswith(".")
        ]
        others.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for old in others[_KEPT_PREVIOUS:]:
            # Libraries read files of their own when they are first used, long after the start.
            if not is_shared(old / USE_LOCK):
                self._remove(old)

    def _remove(self, folder: Path) -> None:
        if folder.exists():
            # Renamed first: a removal that is interrupted must not leave half an environment there.
            doomed = tempfile.mkdtemp(prefix=_REMOVING, dir=self.path)
            shutil.rmtree(folder.rename(doomed))
