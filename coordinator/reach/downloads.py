"""What building an environment would download: size and licence, said before it starts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.facts.sizes import format_size
from coordinator.reach.interpreters import Interpreter, fetchable_python, python_remedy
from coordinator.reach.naming import normalized
from coordinator.reach.projects import WorkerProject
from coordinator.reach.tool import Phase, UvTool, build_failure
from stagewire.errors import EnvironmentBuildError


@dataclass(frozen=True, slots=True)
class DownloadEstimate:
    """What a worker's environment takes from the network when nothing of it is cached."""

    name: str
    size_bytes: int
    licence: str
    """Of the worker itself, as its pyproject.toml states it."""

    def __str__(self) -> str:
        return f"{self.name}: up to {format_size(self.size_bytes)}, licence {self.licence}"


def exported_requirements(
    project: WorkerProject, interpreter: Interpreter | None, tool: UvTool
) -> str:
    """Returns the lock as requirements with hashes, less the projects of the checkout.

    Without an interpreter the lock is not compared with pyproject.toml.

    Raises:
        EnvironmentBuildError: the lock is missing or does not match pyproject.toml.
    """
    arguments = ["export", "--project", str(project.folder)]
    if interpreter is None:
        arguments += ["--frozen"]
    else:
        arguments += ["--locked", "--python", str(interpreter.path)]
    arguments += ["--no-dev", "--no-emit-project", "--no-emit-local"]
    arguments += ["--no-header", "--no-annotate", "--emit-index-url"]
    # Reading a lock needs no network, so that being offline never is the cause of a failure.
    result = tool.run(Phase.CHECK, arguments, is_offline=True, folder=project.folder)
    if not result.is_success:
        raise build_failure(f"reading the lock of {project.name}", result)
    return result.output


def estimate_download(
    project: WorkerProject, interpreter: Interpreter | None, tool: UvTool
) -> DownloadEstimate:
    """Returns the sizes that the lock states for the files that fit this machine.

    Without an interpreter they are those for the one that would be fetched.

    Raises:
        EnvironmentBuildError: the lock cannot be used, or no interpreter can be fetched.
    """
    requirements = exported_requirements(project, interpreter, tool)
    if interpreter is not None:
        version = interpreter.identity.version
    elif (fetchable := fetchable_python(project.requires_python)) is not None:
        version = f"{fetchable}.0"
    else:
        raise EnvironmentBuildError(f"{project.name}: {python_remedy(project.requires_python)}")
    ranks = _tag_ranks(version)
    size_bytes = sum(
        _file_size(package, ranks) for package in _needed_packages(requirements, project, version)
    )
    return DownloadEstimate(project.name, size_bytes, project.licence)


def _needed_packages(
    requirements: str, project: WorkerProject, full_version: str
) -> Iterator[Mapping[str, Any]]:
    from packaging.requirements import Requirement

    short_version = ".".join(full_version.split(".")[:2])
    variables = {"python_full_version": full_version, "python_version": short_version}
    for line in requirements.splitlines():
        if not line or line[0] in " #-":
            continue
        requirement = Requirement(line.removesuffix("\\").strip())
        if requirement.marker is not None and not requirement.marker.evaluate(variables):
            continue
        for package in project.locked:
            if normalized(package["name"]) == normalized(requirement.name) and (
                requirement.specifier.contains(package.get("version", "0"), prereleases=True)
            ):
                yield package


def _tag_ranks(full_version: str) -> Mapping[object, int]:
    from packaging import tags

    major, minor = (int(part) for part in full_version.split(".")[:2])
    platforms = list(tags.platform_tags())
    supported = [
        *tags.cpython_tags((major, minor), platforms=platforms),
        *tags.compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    ]
    return {tag: rank for rank, tag in enumerate(supported)}


def _file_size(package: Mapping[str, Any], ranks: Mapping[object, int]) -> int:
    from packaging.utils import parse_wheel_filename

    best_rank, best_size = len(ranks), package.get("sdist", {}).get("size", 0)
    for wheel in package.get("wheels", ()):
        file_name = wheel.get("filename") or wheel.get("url", wheel.get("path", ""))
        wheel_tags = parse_wheel_filename(file_name.rsplit("/", 1)[-1].split("#")[0])[3]
        rank = min((ranks.get(tag, len(ranks)) for tag in wheel_tags), default=len(ranks))
        if rank < best_rank:
            best_rank, best_size = rank, wheel.get("size", 0)
    return int(best_size)
