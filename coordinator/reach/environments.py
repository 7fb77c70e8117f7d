"""Environments of workers: built once with uv, found again by their key, checked and replaced."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.reach.downloads import DownloadEstimate, estimate_download
from coordinator.reach.import_check import SystemLibraryMissingError, check_imports
from coordinator.reach.installing import Installation
from coordinator.reach.interpreters import Interpreter, choose_interpreter
from coordinator.reach.key import environment_key
from coordinator.reach.layout import Environment, EnvironmentFolder, EnvironmentShelf
from coordinator.reach.locking_linux import locked
from coordinator.reach.projects import WorkerProject, file_digest, read_worker_project
from coordinator.reach.tool import Phase, Report, UvTool
from coordinator.reach.wheels import Wheel, WheelStore
from stagewire.errors import EnvironmentBrokenError, EnvironmentMissingError


@dataclass(frozen=True, slots=True)
class _Order:
    """One worker folder as it was found, and the interpreter chosen for it."""

    project: WorkerProject
    interpreter: Interpreter
    shelf: EnvironmentShelf


class EnvironmentBuilder:
    """Owns the environments below a root folder. Blocking; safe to use from several threads."""

    def __init__(
        self, root: Path, report: Report, *, is_dev: bool = False, uv: Path | None = None
    ) -> None:
        self._root = root.resolve()
        self._report = report
        self._is_dev = is_dev
        self._tool = UvTool(report, uv)
        self._wheels = WheelStore(self._root / "wheels", self._tool, report)

    def find(self, worker_folder: Path) -> Environment | None:
        """Returns the environment of a worker folder as it is now, if it needs no work at all."""
        return self._ready(self._order(worker_folder))

    def plan_download(self, worker_folder: Path) -> DownloadEstimate:
        """Returns what building would download at most, and the worker's licence."""
        order = self._order(worker_folder)
        return estimate_download(order.project, order.interpreter, self._tool)

    def ensure(self, worker_folder: Path, *, is_download_allowed: bool) -> Environment:
        """Returns the environment of a worker folder, building and checking it as far as needed.

        What uv has in its cache is used without asking; the network only if that is not enough.

        Raises:
            EnvironmentMissingError: something must be downloaded and may not be; says how much.
            EnvironmentBuildError: a tool failed; the message has its last lines.
            EnvironmentBrokenError: it was built and its libraries cannot be imported here.
            DiskFullError: the disk is full.
        """
        order = self._order(worker_folder)
        found = self._ready(order)
        if found is not None:
            return found
        name = order.project.name
        with locked(order.shelf.lock_path, lambda: self._report(Phase.WAIT, name)):
            try:
                return self._ensure_locked(order, is_download_allowed)
            except EnvironmentMissingError as error:
                estimate = estimate_download(order.project, order.interpreter, self._tool)
                raise EnvironmentMissingError(
                    f"the environment of {estimate} must be downloaded first;"
                    " allow it with `--yes`",
                    worker=estimate.name,
                    size_bytes=estimate.size_bytes,
                    licence=estimate.licence,
                ) from error

    def recheck(self, worker_folder: Path) -> None:
        """Imports the libraries again; where that fails, the next `ensure` mends the environment.

        Raises:
            EnvironmentBrokenError: the libraries cannot be imported.
        """
        order = self._order(worker_folder)
        key = self._known_key(order)
        if key is None or not order.shelf.folder(key).is_whole(key):
            return
        with locked(order.shelf.lock_path, lambda: self._report(Phase.WAIT, order.project.name)):
            self._check(order.project, order.shelf.folder(key))

    def stop(self) -> None:
        """Ends a running build; `ensure` then raises. Callable from any thread, not reversible."""
        self._tool.stop()

    def _order(self, worker_folder: Path) -> _Order:
        project = read_worker_project(worker_folder)
        interpreter = choose_interpreter(project.requires_python, self._tool, project.folder)
        home = self._root / "environments" / project.name
        return _Order(project, interpreter, EnvironmentShelf(home, interpreter.identity.version))

    def _ready(self, order: _Order) -> Environment | None:
        key = self._known_key(order)
        if key is None or not order.shelf.folder(key).is_ready(key):
            return None
        return order.shelf.folder(key).environment(order.project.module)

    def _ensure_locked(self, order: _Order, is_download_allowed: bool) -> Environment:
        wheels = self._current_wheels(order, is_download_allowed)
        key = self._key(order, {each.project: each.sha256 for each in wheels})
        folder = order.shelf.folder(key)
        is_older = folder.is_whole(key)
        if not is_older:
            self._build(order, key, wheels, is_download_allowed)
        try:
            self._check(order.project, folder)
        except SystemLibraryMissingError:
            raise
        except EnvironmentBrokenError:
            if not is_older:
                raise
            # An earlier run built it and it does not work: something damaged it since.
            self._build(order, key, wheels, is_download_allowed)
            self._check(order.project, folder)
        return folder.environment(order.project.module)

    def _current_wheels(self, order: _Order, is_download_allowed: bool) -> list[Wheel]:
        if self._is_dev:
            return []
        return [
            self._wheels.ensure(each, order.interpreter, is_download_allowed=is_download_allowed)
            for each in order.project.projects
        ]

    def _build(
        self, order: _Order, key: str, wheels: list[Wheel], is_download_allowed: bool
    ) -> None:
        project = order.project
        self._report(Phase.INSTALL, f"making the environment of {project.name}")
        building = order.shelf.begin(key)
        installation = Installation(
            project, order.interpreter, building, self._tool, is_download_allowed
        )
        if self._is_dev:
            installation.install_editable()
        else:
            installation.install_wheels([each.path for each in wheels])
        building.mark_built(key, (each.name for each in project.projects))
        order.shelf.place(building, key)

    def _check(self, project: WorkerProject, folder: EnvironmentFolder) -> None:
        self._report(Phase.CHECK, f"importing {', '.join(project.checked_imports)}")
        try:
            check_imports(folder.python, project.checked_imports, project.name)
        except EnvironmentBrokenError:
            folder.mark_checked(False)
            raise
        folder.mark_checked(True)

    def _known_key(self, order: _Order) -> str | None:
        """Returns the key without building anything; None when a wheel has to be built for it."""
        digests: dict[str, str] = {}
        for project in () if self._is_dev else order.project.projects:
            wheel = self._wheels.find(project)
            if wheel is None:
                return None
            digests[project.name] = wheel.sha256
        return self._key(order, digests)

    def _key(self, order: _Order, wheel_digests: Mapping[str, str]) -> str:
        project = order.project
        digests = dict(wheel_digests)
        if self._is_dev:
            # Sources are run from the checkout; only what an installation copies counts.
            digests = {
                each.name: file_digest(each.folder / "pyproject.toml") for each in project.projects
            }
        return environment_key(
            lock_sha256=project.lock_sha256,
            interpreter=order.interpreter.identity,
            project_digests=digests,
            checkout=str(project.folder) if self._is_dev else "",
        )
