"""Memory by attribution: what the processes of a run occupy, and what of it is explained. Pure.

Of the anonymous memory of a worker, what its process had before its first load is its base, and
what each load added belongs to that stage. What is left came afterwards: requests, caches, leaks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.app.processes import Occupation, RunningProcesses, RunningWorker
from coordinator.devices.process_memory import ProcessMemory, Unread

COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True)
class StageShare:
    """The anonymous memory that the load of one stage added."""

    stage: str
    anonymous_bytes: int


@dataclass(frozen=True, slots=True)
class Occupant:
    """The process of a worker, or the coordinator's, with all that it started."""

    name: str
    """`coordinator`, or the name of the worker."""
    processes: tuple[ProcessMemory, ...]
    """The process itself first."""
    unread: tuple[Unread, ...]
    anonymous_bytes: int
    file_bytes: int
    model_bytes: int
    """What of the files belongs to artifacts of its stages."""
    shared_bytes: int
    swap_bytes: int
    counted_bytes: int
    """What the ledger counts: anonymous memory and model files."""
    reserved_bytes: int
    request_bytes: int
    """What of the reservation is kept for requests."""
    base_bytes: int | None
    """Anonymous memory before the first load; None where that is not known."""
    stages: tuple[StageShare, ...]
    remainder_bytes: int | None
    """Anonymous memory that neither the base nor a load explains; None without a base."""
    remainder_share: float | None
    """Its share of the anonymous memory."""

    @property
    def is_over(self) -> bool:
        """Whether more is counted than is reserved."""
        return self.counted_bytes > self.reserved_bytes


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of an artifact that a stage of a worker executes."""

    worker: str
    artifact: str
    stages: tuple[str, ...]
    """Stages that execute it."""
    path: str
    size_bytes: int | None
    """None when it is not there any more."""
    mapped_bytes: int
    """What the processes of the worker have mapped and resident."""
    cached_bytes: int | None
    """What the memory of the machine holds, mapped or not; the kernel gives up what is not."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What a run of a coordinator occupies."""

    occupants: tuple[Occupant, ...]
    """The coordinator first."""
    model_files: tuple[ModelFile, ...]
    arena_bytes: int
    """Shared memory for payloads: none, for this version moves them inside messages."""
    total_bytes: int
    """Anonymous memory, files and shared memory of all processes."""
    counted_bytes: int
    reserved_bytes: int
    remainder_bytes: int
    """That of all workers that have one."""


@dataclass(frozen=True, slots=True)
class FileSize:
    """What is known of a file on the disk."""

    size_bytes: int | None
    cached_bytes: int | None


Readings = Mapping[str, Sequence[ProcessMemory | Unread]]
"""What was read of each occupant's processes, its own first."""


def attribute(
    running: RunningProcesses, readings: Readings, files: Mapping[str, FileSize]
) -> MemoryReport:
    """Returns what the processes occupy and what of it is explained."""
    own = _occupant(
        COORDINATOR,
        readings[COORDINATOR],
        (),
        running.coordinator_reserved_bytes,
        running.coordinator_request_bytes,
    )
    workers = [
        _occupant(
            worker.worker,
            readings[worker.worker],
            worker.stages,
            worker.reserved_bytes,
            worker.request_bytes,
        )
        for worker in running.workers
    ]
    occupants = (own, *workers)
    return MemoryReport(
        occupants,
        tuple(
            file
            for worker, occupant in zip(running.workers, workers, strict=True)
            for file in _model_files(worker, occupant, files)
        ),
        arena_bytes=0,
        total_bytes=sum(
            item.anonymous_bytes + item.file_bytes + item.shared_bytes for item in occupants
        ),
        counted_bytes=sum(item.counted_bytes for item in occupants),
        reserved_bytes=sum(item.reserved_bytes for item in occupants),
        remainder_bytes=sum(item.remainder_bytes or 0 for item in occupants),
    )


def _occupant(
    name: str,
    readings: Iterable[ProcessMemory | Unread],
    stages: Sequence[Occupation],
    reserved_bytes: int,
    request_bytes: int,
) -> Occupant:
    found = list(readings)
    processes = tuple(item for item in found if isinstance(item, ProcessMemory))
    models = {path for stage in stages for path in stage.files}
    anonymous = sum(item.anonymous_bytes for item in processes)
    model_bytes = sum(item.bytes_of(path) for item in processes for path in models)
    base, shares = _loads(stages)
    is_whole = len(processes) == len(found)
    explained = None if base is None else base + sum(share.anonymous_bytes for share in shares)
    remainder = max(0, anonymous - explained) if explained is not None and is_whole else None
    return Occupant(
        name,
        processes,
        tuple(item for item in found if isinstance(item, Unread)),
        anonymous,
        sum(item.file_bytes for item in processes),
        model_bytes,
        sum(item.shared_bytes for item in processes),
        sum(item.swap_bytes for item in processes),
        anonymous + model_bytes,
        reserved_bytes,
        request_bytes,
        base,
        shares,
        remainder,
        remainder / anonymous if remainder is not None and anonymous else None,
    )


def _loads(stages: Sequence[Occupation]) -> tuple[int | None, tuple[StageShare, ...]]:
    """Returns the anonymous memory before the first load, and what each load added."""
    sizes = [
        (stage.stage, stage.anonymous_before_bytes, stage.anonymous_after_bytes) for stage in stages
    ]
    known = [
        (stage, before, after)
        for stage, before, after in sizes
        if before is not None and after is not None
    ]
    if not known or len(known) < len(sizes):
        return None, ()
    # Loads take turns: the one that found the least came first.
    base = min(before for _, before, _ in known)
    return base, tuple(StageShare(stage, max(0, after - before)) for stage, before, after in known)


def _model_files(
    worker: RunningWorker, occupant: Occupant, files: Mapping[str, FileSize]
) -> Iterable[ModelFile]:
    users: dict[tuple[str, str], list[str]] = {}
    for stage in worker.stages:
        for path in stage.files:
            users.setdefault((stage.artifact, path), []).append(stage.stage)
    for (artifact, path), stages in users.items():
        size = files.get(path, FileSize(None, None))
        yield ModelFile(
            worker.worker,
            artifact,
            tuple(stages),
            path,
            size.size_bytes,
            sum(item.bytes_of(path) for item in occupant.processes),
            size.cached_bytes,
        )
