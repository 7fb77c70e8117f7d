"""Installing an environment into a folder: first what the lock pins, then the own projects."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.reach.downloads import exported_requirements
from coordinator.reach.interpreters import Interpreter
from coordinator.reach.layout import EnvironmentFolder
from coordinator.reach.projects import WorkerProject
from coordinator.reach.tool import Phase, UvTool, build_failure
from stagewire.errors import EnvironmentMissingError


@dataclass(frozen=True, slots=True)
class Installation:
    """One environment that is being made.

    Its methods raise EnvironmentMissingError when something must be downloaded and may not be,
    EnvironmentBuildError when a tool fails, and DiskFullError.
    """

    project: WorkerProject
    interpreter: Interpreter
    folder: EnvironmentFolder
    tool: UvTool
    is_download_allowed: bool

    def install_wheels(self, wheels: Sequence[Path]) -> None:
        """Installs the lock and then the given wheels."""
        self._install_lock()
        # As addresses: in a path a semicolon would begin a condition.
        own = ["--no-deps", "--no-index", *(wheel.as_uri() for wheel in wheels)]
        self._install(own, is_download_allowed=False)

    def install_editable(self) -> None:
        """Installs the lock, and the checkout's own projects to run from their sources."""
        self._install_lock()
        projects = self.project.projects
        own = ["--no-deps", *(f"--editable={each.folder.as_uri()}" for each in projects)]
        self._install(own, is_download_allowed=self.is_download_allowed)

    def _install_lock(self) -> None:
        # Relocatable, because the folder is renamed when it is complete.
        arguments = ["venv", "--relocatable", "--no-project", "--no-python-downloads"]
        arguments += ["--python", str(self.interpreter.path), str(self.folder.path)]
        self._run(arguments, is_download_allowed=False)
        requirements = self.folder.path / "requirements.txt"
        requirements.write_text(exported_requirements(self.project, self.interpreter, self.tool))
        locked = ["--require-hashes", "--requirements", str(requirements)]
        self._install(locked, is_download_allowed=self.is_download_allowed)

    def _install(self, what: Sequence[str], *, is_download_allowed: bool) -> None:
        arguments = ["pip", "install", "--python", str(self.folder.python), *what]
        self._run(arguments, is_download_allowed=is_download_allowed)

    def _run(self, arguments: Sequence[str], *, is_download_allowed: bool) -> None:
        result = self.tool.run_with_cache_first(
            Phase.INSTALL,
            arguments,
            is_download_allowed=is_download_allowed,
            folder=self.folder.path.parent,
        )
        if result.is_cache_short and not is_download_allowed:
            raise EnvironmentMissingError(f"packages of {self.project.name} must be downloaded")
        if not result.is_success:
            raise build_failure(f"installing the environment of {self.project.name}", result)
