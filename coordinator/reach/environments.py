"""Environments of workers: built once with uv, found again by their key, checked and replaced."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.artifacts.cache_folder import check_cache, make_cache, require_programs
from coordinator.artifacts.trouble import naming_trouble
from coordinator.reach.downloads import DownloadEstimate, estimate_download
from coordinator.reach.import_check import SystemLibraryMissingError, check_imports
from coordinator.reach.installing import Installation
from coordinator.reach.interpreters import (
    Interpreter,
    fetch_interpreter,
    fetchable_python,
    find_interpreter,
    python_remedy,
)
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
        self._interpreters: dict[str, Interpreter] = {}

    def find(self, worker_folder: Path) -> Environment | None:
        """Returns the environment of a worker folder as it is now, if it needs no work at all."""
        with naming_trouble(self._root):
            check_cache(self._root)
            require_programs(self._root)
            project = read_worker_project(worker_folder)
            interpreter = self._find_interpreter(project)
            return None if interpreter is None else self._ready(self._order(project, interpreter))

    def missing_python(self, worker_folder: Path) -> str | None:
        """Returns the version of Python, such as "3.13", that has to be downloaded too."""
        project = read_worker_project(worker_folder)
        if self._find_interpreter(project) is not None:
            return None
        return fetchable_python(project.requires_python)

    def plan_download(self, worker_folder: Path) -> DownloadEstimate:
        """Returns what building would download at most, and the worker's licence.

        Raises:
            EnvironmentBuildError: the lock cannot be used, or no interpreter suits.
        """
        project = read_worker_project(worker_folder)
        return estimate_download(project, self._find_interpreter(project), self._tool)

    def ensure(self, worker_folder: Path, *, is_download_allowed: bool) -> Environment:
        """Returns the environment of a worker folder, building and checking it as far as needed.

        What uv has in its cache is used without asking; the network only if that is not enough.

        Raises:
            EnvironmentMissingError: something must be downloaded and may not be; says how much.
            EnvironmentBuildError: a tool failed; the message has its last lines.
            EnvironmentBrokenError: it was built and its libraries cannot be imported here.
            DiskFullError: the disk is full.
        """
        with naming_trouble(self._root):
            check_cache(self._root)
            require_programs(self._root)
            project = read_worker_project(worker_folder)
            order = self._order(project, self._interpreter(project, is_download_allowed))
            found = self._ready(order)
            if found is not None:
                return found
            make_cache(self._root)
            with self._holding(order):
                return self._ensure_locked(order, is_download_allowed)

    def mend(self, worker_folder: Path, *, is_download_allowed: bool) -> Environment | None:
        """Looks at every file of an environment and builds it anew if one is damaged.

        Returns None where nothing is wrong with it.

        Raises:
            EnvironmentBrokenError: a system library is missing, or what was built anew is damaged
                too; the message says what to do.
            StageError: as `ensure`.
        """
        with naming_trouble(self._root):
            require_programs(self._root)
            make_cache(self._root)
            return self._mend(worker_folder, is_download_allowed)

    def _mend(self, worker_folder: Path, is_download_allowed: bool) -> Environment | None:
        project = read_worker_project(worker_folder)
        order = self._order(project, self._interpreter(project, is_download_allowed))
        with self._holding(order):
            key = self._known_key(order)
            if key is not None and order.shelf.folder(key).is_whole(key):
                if self._is_sound(order, order.shelf.folder(key)):
                    return None
                order.shelf.folder(key).forget()
            mended = self._ensure_locked(order, is_download_allowed)
            damaged = order.shelf.folder(mended.key).damaged()
        if damaged:
            names = ", ".join(damaged)
            raise EnvironmentBrokenError(
                f"the cache of uv has damaged files of {names}; run"
                f" `./run uv cache clean {' '.join(damaged)}` and start again",
                distributions=names,
            )
        return mended

    def stop(self) -> None:
        """Ends a running build; `ensure` then raises. Callable from any thread, not reversible."""
        self._tool.stop()

    def _find_interpreter(self, project: WorkerProject) -> Interpreter | None:
        # Looked for once: a search runs many programs, and what is found stays while this does.
        wanted = project.requires_python
        if wanted not in self._interpreters:
            found = find_interpreter(wanted, self._tool, project.folder)
            if found is None:
                return None
            self._interpreters[wanted] = found
        return self._interpreters[wanted]

    def _interpreter(self, project: WorkerProject, is_download_allowed: bool) -> Interpreter:
        found = self._find_interpreter(project)
        if found is not None:
            return found
        wanted = project.requires_python
        if not is_download_allowed and fetchable_python(wanted) is not None:
            raise EnvironmentMissingError(
                f"{project.name}: {python_remedy(wanted)}, or allow its download with `--yes`"
            )
        self._report(Phase.INSTALL, f"getting Python {wanted} for {project.name}")
        self._interpreters[wanted] = fetch_interpreter(wanted, self._tool, project.folder)
        return self._interpreters[wanted]

    def _order(self, project: WorkerProject, interpreter: Interpreter) -> _Order:
        home = self._root / "environments" / project.name
        return _Order(project, interpreter, EnvironmentShelf(home, interpreter.identity.version))

    @contextlib.contextmanager
    def _holding(self, order: _Order) -> Iterator[None]:
        """Holds the environments of a worker; says how much is missing where something is."""
        with locked(order.shelf.lock_path, lambda: self._report(Phase.WAIT, order.project.name)):
            try:
                yield
            except EnvironmentMissingError as error:
                estimate = estimate_download(order.project, order.interpreter, self._tool)
                raise EnvironmentMissingError(
                    f"the environment of {estimate} must be downloaded first;"
                    " allow it with `--yes`",
                    worker=estimate.name,
                    size_bytes=estimate.size_bytes,
                    licence=estimate.licence,
                ) from error

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
        with order.shelf.building(key) as building:
            installation = Installation(
                project, order.interpreter, building, self._tool, is_download_allowed
            )
            if self._is_dev:
                installation.install_editable()
            else:
                installation.install_wheels([each.path for each in wheels])
            building.mark_built(key, (each.name for each in project.projects))

    def _is_sound(self, order: _Order, folder: EnvironmentFolder) -> bool:
        self._report(Phase.CHECK, f"reading the files of {order.project.name}")
        if folder.damaged():
            return False
        try:
            self._check(order.project, folder)
        except SystemLibraryMissingError:
            raise
        except EnvironmentBrokenError:
            return False
        return True

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
