"""The cache of artifacts. Its calls block; asynchronous callers run them in a thread."""

import enum
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from coordinator.artifacts.cache_folder import check_cache, make_cache
from coordinator.artifacts.inspection import Problem, inspect
from coordinator.artifacts.layout import Layout
from coordinator.artifacts.locking import holding
from coordinator.artifacts.progress import ArtifactProgress, Phase, Report, silent
from coordinator.artifacts.publishing import show
from coordinator.artifacts.pulling import Pull
from coordinator.artifacts.records import ArtifactEntry, read_entry
from coordinator.artifacts.space import naming_a_full_disk
from coordinator.artifacts.specification import Artifact, ArtifactFile
from coordinator.artifacts.trouble import naming_trouble


class ArtifactStatus(enum.StrEnum):
    """State of an artifact in the cache, as far as names and sizes tell."""

    PRESENT = "present"
    MISSING = "missing"
    CORRUPT = "corrupt"


class ArtifactStore:
    """Holds every file once under its sha256; processes may share one."""

    def __init__(self, root: Path) -> None:
        # The kernel names mapped files by their true paths; workers look for model files there.
        self._layout = Layout(root.resolve())

    @property
    def root(self) -> Path:
        """Folder of the cache."""
        return self._layout.root

    def check(self) -> None:
        """Looks at the folder of the cache, which may not exist yet, before anything is fetched.

        Raises:
            PathForbiddenError: it is no folder, another user's, or open to others.
        """
        with naming_trouble(self.root):
            check_cache(self.root)

    def status(self, artifact: Artifact) -> ArtifactStatus:
        """Returns the state of an artifact without reading its files; `verify` reads them."""
        with naming_trouble(self.root):
            states = {self._state(file) for file in artifact.files}
        worst_first = (ArtifactStatus.CORRUPT, ArtifactStatus.MISSING)
        return next((state for state in worst_first if state in states), ArtifactStatus.PRESENT)

    def missing_bytes(self, artifact: Artifact) -> int:
        """Returns the known size of the files that a pull would store."""
        with naming_trouble(self.root):
            wanted = {
                file.sha256: file.size_bytes or 0
                for file in artifact.files
                if self._state(file) is not ArtifactStatus.PRESENT
            }
        return sum(wanted.values())

    def pull(
        self,
        artifact: Artifact,
        base: Path,
        report: Report = silent,
        is_network_allowed: bool = True,
    ) -> None:
        """Makes an artifact whole: checks every file, fetches what is missing or damaged.

        `base` is the folder of the plan. Whatever fails or dies on the way, nothing unfinished
        counts as cached.

        Raises:
            ArtifactMissingError: something is missing and may not be fetched.
            ArtifactUnavailableError: a source does not answer or does not have the file.
            ArtifactCorruptError: a source has other bytes than the plan says.
            DiskFullError: the disk has too little room.
            PathForbiddenError: a `file:` source is a link or no regular file, or the cache cannot
                be used.
        """
        with naming_trouble(self.root):
            make_cache(self.root)
            Pull(self._layout, artifact, base, report, is_network_allowed).run()

    def verify(self, artifact: Artifact, report: Report = silent) -> list[Problem]:
        """Reads every file and returns what is wrong; empty when all is well."""
        problems: list[Problem] = []
        with naming_trouble(self.root):
            for file in artifact.files:
                paths = [self._layout.object_path(file)]
                view = self._layout.view_path(artifact, file)
                # The name that executors use is normally a hard link to the same bytes: read once.
                if os.path.lexists(self.root / view) and not self._is_same_file(view, paths[0]):
                    paths.append(view)
                found = (self._inspect(artifact, file, path, report) for path in paths)
                problems += [problem for problem in found if problem is not None][:1]
        return problems

    def materialize(self, artifact: Artifact, report: Report = silent) -> Mapping[str, Path]:
        """Returns where each file of an artifact lies, all in one folder under their own names.

        Every byte is read and compared with the plan now: this is the check before a load.

        Raises:
            ArtifactMissingError: a file is not in the cache.
            ArtifactCorruptError: a file differs from its sha256, be it by one bit.
            PathForbiddenError: a link or something else stands where a file belongs.
        """
        paths: dict[str, Path] = {}
        with naming_trouble(self.root):
            self._require_names(artifact, report)
            for file in artifact.files:
                view = self._layout.view_path(artifact, file)
                problem = self._inspect(artifact, file, view, report)
                if problem is not None:
                    raise problem.failure()
                paths[file.path] = self.root / view
        return paths

    def folder(self, artifact: Artifact) -> Path:
        """Returns the folder in which `materialize` shows the files."""
        return self._layout.artifacts / artifact.digest

    def entries(self) -> list[ArtifactEntry]:
        """Returns every artifact that was pulled whole, by id.

        Raises:
            ArtifactCorruptError: a record is damaged.
        """
        with naming_trouble(self.root):
            records = self._layout.artifacts.glob("*.json")
            return sorted(map(read_entry, records), key=lambda entry: (entry.ids, entry.digest))

    def _state(self, file: ArtifactFile) -> ArtifactStatus:
        try:
            found = os.lstat(self.root / self._layout.object_path(file))
        except (FileNotFoundError, NotADirectoryError):
            return ArtifactStatus.MISSING
        is_sound = stat.S_ISREG(found.st_mode) and file.size_bytes in {None, found.st_size}
        return ArtifactStatus.PRESENT if is_sound else ArtifactStatus.CORRUPT

    def _require_names(self, artifact: Artifact, report: Report) -> None:
        for file in artifact.files:
            if self._state(file) is not ArtifactStatus.PRESENT:
                stored = self._layout.object_path(file)
                problem = self._inspect(artifact, file, stored, report)
                if problem is not None:
                    raise problem.failure()
        views = (self._layout.view_path(artifact, file) for file in artifact.files)
        if all(os.path.lexists(self.root / view) for view in views):
            return
        # The files came with another artifact that has them too.
        waiting = partial(report, ArtifactProgress(artifact.id, "", Phase.WAITING, 0, None))
        parent = self._layout.staging / artifact.digest
        with (
            holding(self._layout.lock(artifact.digest), waiting),
            naming_a_full_disk(artifact.id, self.root, 0),
        ):
            parent.mkdir(parents=True, exist_ok=True)
            try:
                show(self._layout, artifact, Path(tempfile.mkdtemp(dir=parent)))
            finally:
                shutil.rmtree(parent, ignore_errors=True)

    def _is_same_file(self, first: str, second: str) -> bool:
        try:
            one, other = os.lstat(self.root / first), os.lstat(self.root / second)
        except FileNotFoundError:
            return False
        return os.path.samestat(one, other)

    def _inspect(
        self, artifact: Artifact, file: ArtifactFile, path: str, report: Report
    ) -> Problem | None:
        return inspect(artifact.id, file, self.root, path, self._teller(artifact, file, report))

    @staticmethod
    def _teller(artifact: Artifact, file: ArtifactFile, report: Report) -> Callable[[int], None]:
        return lambda done: report(
            ArtifactProgress(artifact.id, file.path, Phase.CHECKING, done, file.size_bytes)
        )
