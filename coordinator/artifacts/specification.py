"""Artifacts as the cache sees them: files, their sha256 and the sources of their parts. Pure."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from coordinator.artifacts.paths import safe_parts
from coordinator.facts.ids import ArtifactId
from coordinator.plan.artifact_spec import ArtifactSpec
from coordinator.plan.sources import SHA256_PATTERN, FileSource, Source
from stagewire.errors import PlanInvalidError

_SHA256: Final = re.compile(SHA256_PATTERN)


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a package index, pinned by its sha256."""

    distribution: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"pypi:{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True)
class WheelMember:
    """A file inside a wheel."""

    wheel: Wheel
    path: str
    """Relative to the root of the wheel."""

    def __str__(self) -> str:
        return f"{self.wheel}#{self.path}"


Part: TypeAlias = FileSource | WheelMember
"""Bytes of a file: a file beside the plan, or one of a wheel."""


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """One file of an artifact: its parts joined in order give the bytes of `sha256`."""

    path: str
    """Where it lies in the artifact's folder."""
    sha256: str
    size_bytes: int | None
    """None when the plan does not say."""
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        # Both become part of paths in the cache.
        safe_parts(self.path)
        if not _SHA256.fullmatch(self.sha256):
            raise PlanInvalidError(
                f"the sha256 of {self.path!r} is not 64 lower-case hexadecimal digits"
            )
        if not self.parts:
            raise PlanInvalidError(f"{self.path!r} has no source; write `from` or `join`")

    def wheels(self) -> tuple[Wheel, ...]:
        """Returns the wheels that hold its parts, each once, in the order of the parts."""
        return tuple(
            dict.fromkeys(part.wheel for part in self.parts if isinstance(part, WheelMember))
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


def from_spec(artifact_id: ArtifactId, spec: ArtifactSpec) -> Artifact:
    """Returns an artifact from its description in a plan."""
    files = tuple(
        ArtifactFile(file.path, file.sha256, file.size, tuple(map(_part_from, file.sources)))
        for file in spec.files
    )
    return Artifact(artifact_id, spec.format, spec.licence, files)


def _part_from(source: Source) -> Part:
    if isinstance(source, FileSource):
        return source
    return WheelMember(Wheel(source.name, source.version, source.wheel_sha256), source.member)
