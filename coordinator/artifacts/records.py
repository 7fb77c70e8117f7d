"""Records of the artifacts that are whole in the cache."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from coordinator.artifacts.layout import Layout
from coordinator.artifacts.publishing import publish
from coordinator.artifacts.specification import Artifact
from stagewire.errors import ArtifactCorruptError


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """One artifact in the cache, as it was when it was pulled."""

    digest: str
    ids: tuple[str, ...]
    """What plans call it."""
    format: str
    licence: str
    files: tuple[tuple[str, str, int], ...]
    """Path, sha256 and size in bytes of each file."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all files; artifacts with equal files share them."""
        return sum(size for _, _, size in self.files)


def entry_of(artifact: Artifact, layout: Layout) -> ArtifactEntry:
    """Returns the entry of a whole artifact; keeps the ids that an earlier one had."""
    try:
        ids = set(read_entry(layout.record(artifact.digest)).ids)
    except (FileNotFoundError, ArtifactCorruptError):
        ids = set()
    files = tuple(
        (file.path, file.sha256, (layout.root / layout.object_path(file)).stat().st_size)
        for file in artifact.files
    )
    return ArtifactEntry(
        artifact.digest,
        tuple(sorted(ids | {str(artifact.id)})),
        artifact.format,
        artifact.licence,
        files,
    )


def write_entry(entry: ArtifactEntry, temporary: Path, target: Path) -> None:
    """Writes a record whole or not at all."""
    content = {
        "digest": entry.digest,
        "ids": entry.ids,
        "format": entry.format,
        "licence": entry.licence,
        "files": entry.files,
    }
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    publish(temporary, target)


def read_entry(path: Path) -> ArtifactEntry:
    """Returns the entry of a record.

    Raises:
        ArtifactCorruptError: the record is damaged.
        FileNotFoundError: there is none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return ArtifactEntry(
            digest=str(content["digest"]),
            ids=tuple(map(str, content["ids"])),
            format=str(content["format"]),
            licence=str(content["licence"]),
            files=tuple((str(file), str(sha), int(size)) for file, sha, size in content["files"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactCorruptError(
            f"the record {path.name!r} in the artifact cache is damaged;"
            " pull the artifact again, or delete the record",
            record=path.name,
        ) from error
