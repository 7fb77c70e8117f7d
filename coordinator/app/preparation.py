"""What must be on the disk before workers start: artifacts and environments. Blocking."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from coordinator.app.design import Design
from coordinator.app.settings import Settings
from coordinator.artifacts.progress import ArtifactProgress
from coordinator.artifacts.specification import Artifact, from_spec
from coordinator.artifacts.store import ArtifactStatus, ArtifactStore
from coordinator.facts.ids import ArtifactId, StageId, WorkerId
from coordinator.facts.sizes import format_size
from coordinator.plan.loading import LoadedPlan
from coordinator.reach.downloads import DownloadEstimate
from coordinator.reach.environments import EnvironmentBuilder
from coordinator.reach.foreign import foreign_environment
from coordinator.reach.interpreters import PYTHON_BYTES, PYTHON_LICENCE
from coordinator.reach.layout import Environment
from stagewire.errors import CancelledError, EnvironmentMissingError

FAKE_MODULE: Final = "stagewire.worker.fake"
_Result = TypeVar("_Result")
Report = Callable[[str, str], None]
"""Called with a subject and what is being done to it."""


@dataclass(frozen=True, slots=True)
class Download:
    """One thing that has to be fetched, said before it is."""

    name: str
    size_bytes: int
    licence: str


def checkout_root() -> Path:
    """Returns the folder that holds the projects of the workers."""
    return Path(__file__).resolve().parents[2]


class Preparation:
    """Prepares one design. Every call blocks; callers of an event loop use a thread."""

    def __init__(
        self, settings: Settings, loaded: LoadedPlan, design: Design, report: Report
    ) -> None:
        self._settings = settings
        self._loaded = loaded
        self._design = design
        self._report = report
        self._is_stopped = False
        self.is_download_allowed = False
        """Whether what is missing may be fetched; set once somebody agreed."""
        self._mending = threading.Lock()
        self._mended: dict[Path, Environment | None] = {}
        self._found: dict[Path, Environment] = {}
        self.store = ArtifactStore(settings.cache_folder)
        self._builder = EnvironmentBuilder(
            settings.cache_folder,
            lambda phase, detail: report(phase.value, detail),
            is_dev=settings.is_dev,
        )

    def artifacts(self) -> Mapping[ArtifactId, Artifact]:
        """Returns the artifacts that the placement uses."""
        if self._settings.is_fake:
            return {}
        chosen = [self._design.placement.stages[stage].artifact for stage in self._design.stages]
        plan = self._loaded.plan
        return {
            choice.artifact_id: from_spec(choice.artifact_id, plan.artifacts[choice.artifact_id])
            for choice in chosen
            if choice is not None
        }

    def downloads(self) -> tuple[Download, ...]:
        """Returns everything that is not on the disk yet, models first.

        Raises:
            StageError: an environment could not be built even with a download.
        """
        artifacts = self.artifacts()
        if artifacts:
            self.store.check()
        found = [
            Download(f"model {name}", self.store.missing_bytes(artifact), artifact.licence)
            for name, artifact in artifacts.items()
            if self.store.status(artifact) is not ArtifactStatus.PRESENT
        ]
        folders = tuple(dict.fromkeys(self._folders().values()))
        pythons = dict.fromkeys(map(self._builder.missing_python, folders))
        found += [
            Download(f"Python {version}", PYTHON_BYTES, PYTHON_LICENCE)
            for version in pythons
            if version is not None
        ]
        for folder in folders:
            environment = self._builder.find(folder)
            if environment is not None:
                self._found[folder] = environment
            else:
                estimate: DownloadEstimate = self._builder.plan_download(folder)
                found.append(
                    Download(f"environment {estimate.name}", estimate.size_bytes, estimate.licence)
                )
        return tuple(found)

    def pull(self) -> None:
        """Fetches every artifact that is missing.

        Raises:
            StageError: a source fails, the disk is full, or fetching is not allowed.
        """
        for name, artifact in self.artifacts().items():
            if self.store.status(artifact) is ArtifactStatus.PRESENT:
                continue

            def tell(progress: ArtifactProgress, name: ArtifactId = name) -> None:
                if self._is_stopped:
                    raise CancelledError("the download was stopped")
                total = f" of {format_size(progress.total_bytes)}" if progress.total_bytes else ""
                done = format_size(progress.done_bytes)
                self._report(f"model {name}", f"{progress.phase} {done}{total}")

            size, began = self.store.missing_bytes(artifact), time.monotonic()
            self.store.pull(
                artifact,
                self._loaded.folder,
                tell,
                is_network_allowed=self.is_download_allowed,
            )
            took = time.monotonic() - began
            self._report(f"model {name}", f"fetched {format_size(size)} in {took:.0f} s")

    def environments(self) -> Mapping[WorkerId, Environment]:
        """Builds or finds the environment of every worker.

        Raises:
            StageError: an environment cannot be built, is broken, or may not be downloaded.
        """
        found: dict[WorkerId, Environment] = {}
        folders = self._folders()
        for worker in self._design.workers:
            if self._settings.is_fake:
                found[worker] = fake_environment()
            elif worker in folders:
                # What was ready when the downloads were looked for is not looked for again.
                folder = folders[worker]
                found[worker] = self._found.get(folder) or self._builder.ensure(
                    folder, is_download_allowed=self.is_download_allowed
                )
            else:
                found[worker] = self._foreign(worker)
        return found

    def mend(self, worker: WorkerId) -> Environment | None:
        """Builds the environment of a worker anew if it is damaged, at most once.

        Returns None where it is whole, or not this program's to build.

        Raises:
            StageError: it cannot be built, or needs something of the machine.
        """
        folder = self._folders().get(worker)
        if folder is None:
            return None
        # Workers that share an environment share what became of it.
        with self._mending:
            if folder not in self._mended:
                self._mended[folder] = self._builder.mend(
                    folder, is_download_allowed=self.is_download_allowed
                )
            return self._mended[folder]

    def materialize(self, stage: StageId) -> tuple[Artifact, Path] | None:
        """Checks every byte of a stage's artifact now; returns it and its folder.

        Raises:
            ArtifactCorruptError: a file differs from its sha256.
            ArtifactMissingError: a file is not in the cache.
        """
        choice = self._design.placement.stages[stage].artifact
        if choice is None or self._settings.is_fake:
            return None
        artifact = self.artifacts()[choice.artifact_id]
        self.store.materialize(artifact)
        return artifact, self.store.folder(artifact)

    async def in_thread(self, work: Callable[..., _Result], *values: object) -> _Result:
        """Does one of the above beside an event loop; ends it when that is not wanted any more."""
        try:
            return await asyncio.to_thread(work, *values)
        except asyncio.CancelledError:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends a download or build that is running; from any thread."""
        self._is_stopped = True
        self._builder.stop()

    def _folders(self) -> Mapping[WorkerId, Path]:
        if self._settings.is_fake:
            return {}
        workers = self._loaded.plan.workers
        return {
            worker: checkout_root() / folder
            for worker in self._design.workers
            if (folder := workers[worker].environment) is not None
        }

    def _foreign(self, worker: WorkerId) -> Environment:
        spec = self._loaded.plan.workers[worker]
        python = spec.interpreter.linux if spec.interpreter is not None else None
        if python is None:
            raise EnvironmentMissingError(
                f"worker {worker!r} names no interpreter for Linux; add interpreter.linux"
            )
        module = FAKE_MODULE if spec.kind == "fake" else f"worker_{spec.kind}"
        return foreign_environment(Path(python), module)


def fake_environment() -> Environment:
    """Returns this program's own interpreter, which has the fake worker."""
    python = Path(sys.executable)
    return Environment(python, "", FAKE_MODULE, python.parent, {})
