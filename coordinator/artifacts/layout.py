"""Where things lie in the cache. Pure."""

from dataclasses import dataclass
from pathlib import Path

from coordinator.artifacts.specification import Artifact, ArtifactFile


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one cache.

    `files/sha256/AB/ABCD...` holds every file once; `artifacts/DIGEST/PATH` shows the files of one
    artifact under their own names, as hard links; `artifacts/DIGEST.json` is written last and says
    that it is whole. `staging/DIGEST/` is scratch space of the process that holds `locks/DIGEST`.
    """

    root: Path

    @property
    def artifacts(self) -> Path:
        """Folder of the records and of the artifacts' own folders."""
        return self.root / "artifacts"

    @property
    def staging(self) -> Path:
        """Folder of everything unfinished; nothing in it counts as cached."""
        return self.root / "staging"

    @staticmethod
    def link_folders(root: Path) -> tuple[Path, ...]:
        """Returns the folders in which the hard links to one file lie, the likeliest first."""
        return tuple(root / name for name in ("files", "artifacts", "staging"))

    @staticmethod
    def object_path(file: ArtifactFile) -> str:
        """Returns where the bytes of a file lie, relative to the root."""
        return f"files/sha256/{file.sha256[:2]}/{file.sha256}"

    @staticmethod
    def view_path(artifact: Artifact, file: ArtifactFile) -> str:
        """Returns where executors open a file, relative to the root."""
        return f"artifacts/{artifact.digest}/{file.path}"

    def record(self, digest: str) -> Path:
        """Returns the record of a whole artifact."""
        return self.artifacts / f"{digest}.json"

    def lock(self, digest: str) -> Path:
        """Returns the lock of whoever changes an artifact."""
        return self.root / "locks" / digest
