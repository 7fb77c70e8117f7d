"""Wheels of the checkout's own projects, built again only when a source file changed."""

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.reach.interpreters import Interpreter
from coordinator.reach.locking_linux import locked
from coordinator.reach.projects import LocalProject, source_digest
from coordinator.reach.tool import Phase, Report, UvTool, build_failure
from stagewire.errors import EnvironmentBuildError, EnvironmentMissingError

_BUILDING: Final = ".building-"
_KEPT_WHEELS: Final = 4
"""Newest wheels of one project that stay: several checkouts may share the cache."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One built wheel."""

    project: str
    path: Path
    sha256: str


class WheelStore:
    """Owns the folder of wheels. A wheel is found by a digest over its sources."""

    def __init__(self, root: Path, tool: UvTool, report: Report) -> None:
        self._root = root
        self._tool = tool
        self._report = report

    def find(self, project: LocalProject) -> Wheel | None:
        """Returns the wheel of the sources as they are now, if it was built before."""
        return self._read(project, source_digest(project.folder))

    def ensure(
        self, project: LocalProject, interpreter: Interpreter, *, is_download_allowed: bool
    ) -> Wheel:
        """Returns the wheel of the sources as they are now, building it if need be.

        Raises:
            EnvironmentBuildError: the project cannot be built.
            EnvironmentMissingError: its build backend has to be downloaded first.
        """
        folder = self._root / project.name
        with locked(folder / ".lock", lambda: self._report(Phase.WAIT, project.name)):
            for rest in folder.glob(f"{_BUILDING}*"):
                shutil.rmtree(rest, ignore_errors=True)
            digest = source_digest(project.folder)
            wheel = self._read(project, digest)
            while wheel is None:
                self._build(project, digest, interpreter, is_download_allowed=is_download_allowed)
                before, digest = digest, source_digest(project.folder)
                if before != digest:
                    # Somebody saved a file meanwhile, so nobody knows which state was built.
                    shutil.rmtree(folder / before)
                wheel = self._read(project, digest)
            self._prune(folder, keep=digest)
        return wheel

    def _read(self, project: LocalProject, digest: str) -> Wheel | None:
        found = sorted((self._root / project.name / digest).glob("*.whl"))
        if not found:
            return None
        sha256 = hashlib.sha256(found[0].read_bytes()).hexdigest()
        return Wheel(project.name, found[0], sha256)

    def _build(
        self,
        project: LocalProject,
        digest: str,
        interpreter: Interpreter,
        *,
        is_download_allowed: bool,
    ) -> None:
        folder = self._root / project.name
        self._report(Phase.WHEELS, f"building {project.name}")
        with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder) as temporary:
            output = Path(temporary, digest)
            arguments = ["build", "--wheel", "--no-create-gitignore", "--out-dir", str(output)]
            arguments += ["--python", str(interpreter.path), str(project.folder)]
            result = self._tool.run_with_cache_first(
                Phase.WHEELS, arguments, is_download_allowed=is_download_allowed, folder=folder
            )
            if not result.is_success:
                if result.is_cache_short and not is_download_allowed:
                    raise EnvironmentMissingError(
                        f"the build backend of {project.name} must be downloaded"
                    )
                raise build_failure(f"building the wheel of {project.name}", result)
            if not list(output.glob("*.whl")):
                raise EnvironmentBuildError(f"the build of {project.name} left no wheel")
            output.rename(folder / digest)

    def _prune(self, folder: Path, *, keep: str) -> None:
        kept = [each for each in folder.iterdir() if each.is_dir() and each.name != keep]
        kept.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for old in kept[_KEPT_WHEELS - 1 :]:
            shutil.rmtree(old)
