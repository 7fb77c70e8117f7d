"""Installing an environment into a folder: first what the lock pins, then the own projects."""

from collections.abc import Sequence
from pathlib import Path

from coordinator.reach.downloads import exported_requirements
from coordinator.reach.interpreters import Interpreter
from coordinator.reach.layout import EnvironmentFolder
from coordinator.reach.projects import WorkerProject
from coordinator.reach.tool import Phase, UvTool, build_failure
from stagewire.errors import EnvironmentMissingError


def install_wheels(
    project: WorkerProject,
    interpreter: Interpreter,
    folder: EnvironmentFolder,
    tool: UvTool,
    wheels: Sequence[Path],
    *,
    is_download_allowed: bool,
) -> None:
    """Installs the lock and then the given wheels.

    Raises:
        EnvironmentMissingError: something must be downloaded and may not be.
        EnvironmentBuildError: a tool failed.
        DiskFullError: the disk is full.
    """
    _install_lock(project, interpreter, folder, tool, is_download_allowed=is_download_allowed)
    own = ["--no-deps", "--no-index", *map(str, wheels)]
    _install(project, folder, tool, own, is_download_allowed=False)


def install_editable(
    project: WorkerProject,
    interpreter: Interpreter,
    folder: EnvironmentFolder,
    tool: UvTool,
    *,
    is_download_allowed: bool,
) -> None:
    """Installs the lock, and the checkout's own projects so that they run from their sources.

    Raises:
        EnvironmentMissingError: something must be downloaded and may not be.
        EnvironmentBuildError: a tool failed.
        DiskFullError: the disk is full.
    """
    _install_lock(project, interpreter, folder, tool, is_download_allowed=is_download_allowed)
    own = ["--no-deps", *(f"--editable={each.folder}" for each in project.projects)]
    _install(project, folder, tool, own, is_download_allowed=is_download_allowed)


def _install_lock(
    project: WorkerProject,
    interpreter: Interpreter,
    folder: EnvironmentFolder,
    tool: UvTool,
    *,
    is_download_allowed: bool,
) -> None:
    # Relocatable, because the folder is renamed when it is complete.
    arguments = ["venv", "--relocatable", "--no-project", "--no-python-downloads"]
    arguments += ["--python", str(interpreter.path), str(folder.path)]
    _run(project, folder, tool, arguments, is_download_allowed=False)
    requirements = folder.path / "requirements.txt"
    requirements.write_text(exported_requirements(project, interpreter, tool))
    locked = ["--require-hashes", "--requirements", str(requirements)]
    _install(project, folder, tool, locked, is_download_allowed=is_download_allowed)


def _install(
    project: WorkerProject,
    folder: EnvironmentFolder,
    tool: UvTool,
    what: Sequence[str],
    *,
    is_download_allowed: bool,
) -> None:
    arguments = ["pip", "install", "--python", str(folder.python), *what]
    _run(project, folder, tool, arguments, is_download_allowed=is_download_allowed)


def _run(
    project: WorkerProject,
    folder: EnvironmentFolder,
    tool: UvTool,
    arguments: Sequence[str],
    *,
    is_download_allowed: bool,
) -> None:
    result = tool.run_with_cache_first(
        Phase.INSTALL,
        arguments,
        is_download_allowed=is_download_allowed,
        folder=folder.path.parent,
    )
    if result.is_cache_short and not is_download_allowed:
        raise EnvironmentMissingError(f"packages of {project.name} must be downloaded")
    if not result.is_success:
        raise build_failure(f"installing the environment of {project.name}", result)
