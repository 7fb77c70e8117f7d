"""Worker folders as they stand in a checkout: pyproject.toml, uv.lock, projects beside them."""

import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomllib

from coordinator.reach.naming import normalized
from stagewire.errors import EnvironmentBuildError

_LEFT_OUT: Final = frozenset({"__pycache__", "dist", "build", "wheels", "node_modules"})


@dataclass(frozen=True, slots=True)
class LocalProject:
    """A project of the checkout that is built from its sources."""

    name: str
    folder: Path


@dataclass(frozen=True, slots=True)
class WorkerProject:
    """What the files of a worker folder say."""

    name: str
    folder: Path
    module: str
    """Module that is run, such as `worker_cpu`."""
    licence: str
    requires_python: str
    checked_imports: tuple[str, ...]
    """Modules that must be importable, the worker's own first."""
    lock_sha256: str
    locked: tuple[Mapping[str, Any], ...]
    """Packages of uv.lock (TOML values, hence Any)."""
    projects: tuple[LocalProject, ...]
    """The worker and every project of the checkout that it depends on, by name."""


def read_worker_project(folder: Path) -> WorkerProject:
    """Reads a worker folder.

    The table `[tool.stagewire]` of its pyproject.toml may name the `module` to run and, under
    `import-check`, the libraries that executors import only when they load.

    Raises:
        EnvironmentBuildError: a file is missing or does not say what it must.
    """
    folder = folder.resolve()
    pyproject, _ = _read_toml(folder / "pyproject.toml", "it is no worker folder")
    lock, lock_bytes = _read_toml(folder / "uv.lock", "run `uv lock` in it")
    project = pyproject.get("project", {})
    tool = pyproject.get("tool", {})
    settings = tool.get("stagewire", {})
    if not project.get("name"):
        raise EnvironmentBuildError(f"{folder.name}/pyproject.toml has no project name; add one")
    module = settings.get("module") or _packaged_module(tool, folder)
    locked = tuple(lock.get("package", ()))
    return WorkerProject(
        name=normalized(project["name"]),
        folder=folder,
        module=module,
        licence=_licence_text(project.get("license")),
        requires_python=project.get("requires-python", ""),
        checked_imports=(module, *settings.get("import-check", ())),
        lock_sha256=hashlib.sha256(lock_bytes).hexdigest(),
        locked=locked,
        projects=tuple(sorted(_local_projects(folder, locked), key=lambda each: each.name)),
    )


def source_digest(folder: Path) -> str:
    """Returns a digest over path, executable bit and content of every source file of a folder."""
    digest = hashlib.sha256()
    for path in sorted(_source_files(folder)):
        content = path.read_bytes()
        is_executable = os.access(path, os.X_OK)
        relative = path.relative_to(folder).as_posix()
        digest.update(f"{relative}\0{int(is_executable)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a small file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _source_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT and not name.startswith(".") and not name.endswith(".egg-info")
        ]
        for name in names:
            path = Path(parent, name)
            # The lock is a part of the key of its own, and never goes into a wheel.
            if not name.endswith(".pyc") and name != "uv.lock" and path.is_file():
                yield path


def _local_projects(folder: Path, locked: tuple[Mapping[str, Any], ...]) -> Iterator[LocalProject]:
    for package in locked:
        source = package.get("source", {})
        relative = source.get("editable") or source.get("directory")
        if relative is not None:
            yield LocalProject(normalized(package["name"]), (folder / relative).resolve())


def _packaged_module(tool: Mapping[str, Any], folder: Path) -> str:
    targets = tool.get("hatch", {}).get("build", {}).get("targets", {})
    packages = targets.get("wheel", {}).get("packages", ())
    modules = [
        name for name in (Path(each).name for each in packages) if name.startswith("worker_")
    ]
    if len(modules) != 1:
        raise EnvironmentBuildError(
            f"{folder.name}/pyproject.toml packages {len(modules)} modules named worker_*, one is"
            " needed; set `module` in [tool.stagewire]"
        )
    return modules[0]


def _licence_text(licence: Any) -> str:
    """Takes the value of `project.license`, which older files write as a table."""
    if isinstance(licence, Mapping):
        return str(licence.get("text") or licence.get("file") or "not stated")
    return str(licence or "not stated")


def _read_toml(path: Path, remedy: str) -> tuple[Mapping[str, Any], bytes]:
    try:
        content = path.read_bytes()
        return _parsed(content), content
    except OSError as error:
        raise EnvironmentBuildError(
            f"{path.parent.name}/{path.name} cannot be read ({error.strerror}); {remedy}"
        ) from error
    except ValueError as error:
        raise EnvironmentBuildError(
            f"{path.parent.name}/{path.name} is not valid TOML: {error}"
        ) from error


@functools.lru_cache(maxsize=16)
def _parsed(content: bytes) -> Mapping[str, Any]:
    # A lock takes longer to parse than everything else that a start reads, and is read repeatedly.
    return tomllib.loads(content.decode())
