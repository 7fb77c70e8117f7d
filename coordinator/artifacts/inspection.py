"""Checks files in the cache against their size and sha256."""

import enum
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.artifacts.layout import Layout
from coordinator.artifacts.opening import open_inside
from coordinator.artifacts.specification import ArtifactFile
from coordinator.facts.ids import ArtifactId
from stagewire.errors import (
    ArtifactCorruptError,
    ArtifactMissingError,
    PathForbiddenError,
    StageError,
)

CHUNK_BYTES: Final = 1 << 20


class ProblemKind(enum.StrEnum):
    """Why a file may not be loaded."""

    MISSING = "missing"
    CORRUPT = "corrupt"
    FORBIDDEN = "forbidden"
    """Not a regular file, or reached over a link."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one file of an artifact in the cache."""

    artifact: ArtifactId
    file: str
    kind: ProblemKind
    detail: str

    def __str__(self) -> str:
        return f"{self.file!r} of artifact {self.artifact!r} {self.detail}"

    def failure(self) -> StageError:
        """Returns the refusal to load the file."""
        failures: dict[ProblemKind, type[StageError]] = {
            ProblemKind.MISSING: ArtifactMissingError,
            ProblemKind.CORRUPT: ArtifactCorruptError,
            ProblemKind.FORBIDDEN: PathForbiddenError,
        }
        return failures[self.kind](
            f"{self}; run `coordinator artifacts pull --plan FILE`",
            artifact=self.artifact,
            file=self.file,
        )


def inspect(
    artifact: ArtifactId, file: ArtifactFile, root: Path, path: str, checked: Callable[[int], None]
) -> Problem | None:
    """Returns what is wrong with the file at `path` in the cache, or None; reads all of it."""
    try:
        with open_inside(root, path, links_within=Layout.link_folders(root)) as stream:
            sha256, size_bytes = digest_of(stream, checked)
    except (FileNotFoundError, PathForbiddenError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        kind = ProblemKind.MISSING if is_missing else ProblemKind.FORBIDDEN
        detail = "is not in the cache" if is_missing else f"may not be opened: {error}"
        return Problem(artifact, file.path, kind, detail)
    if sha256 == file.sha256 and file.size_bytes in {None, size_bytes}:
        return None
    return Problem(artifact, file.path, ProblemKind.CORRUPT, difference(file, sha256, size_bytes))


def difference(file: ArtifactFile, sha256: str, size_bytes: int) -> str:
    """Returns in words how the bytes that were found differ from the plan."""
    if file.size_bytes is not None and size_bytes > file.size_bytes:
        return f"has more than the {file.size_bytes} bytes that the plan says"
    if file.size_bytes not in {None, size_bytes}:
        return f"has {size_bytes} bytes, the plan says {file.size_bytes}"
    return f"has {size_bytes} bytes of sha256 {sha256}, the plan says sha256 {file.sha256}"


def digest_of(stream: io.FileIO, checked: Callable[[int], None]) -> tuple[str, int]:
    """Returns the sha256 and the size of all bytes of a stream."""
    digest = hashlib.sha256()
    size_bytes = 0
    # One buffer for all: fresh pages for each piece would cost as much as the digest itself.
    buffer = memoryview(bytearray(CHUNK_BYTES))
    while count := stream.readinto(buffer):
        digest.update(buffer[:count])
        size_bytes += count
        checked(size_bytes)
    return digest.hexdigest(), size_bytes
