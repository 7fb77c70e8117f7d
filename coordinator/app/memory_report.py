"""Reads what the processes of a running coordinator occupy. Blocking."""

from pathlib import Path

from coordinator.app.attribution import COORDINATOR, FileSize, MemoryReport, attribute
from coordinator.app.processes import RunningProcesses
from coordinator.devices.process_memory import ProcessIdentity, ProcessMemory, ReadFailure, Unread
from coordinator.devices.process_memory_linux import (
    descendants_of,
    page_cache_bytes,
    read_process,
)


def read_memory(running: RunningProcesses) -> MemoryReport:
    """Returns the memory of the coordinator and its workers by attribution."""
    readings = {
        worker.worker: _read_all(worker.identity, descendants_of(worker.identity))
        for worker in running.workers
    }
    # What the coordinator started are workers and, while it prepares, builds and downloads.
    readings[COORDINATOR] = _read_all(running.coordinator, ())
    paths = {path for worker in running.workers for stage in worker.stages for path in stage.files}
    return attribute(running, readings, {path: _size_of(Path(path)) for path in paths})


def _read_all(
    identity: ProcessIdentity, descendants: tuple[ProcessIdentity, ...]
) -> list[ProcessMemory | Unread]:
    started = map(read_process, descendants)
    # One that has ended since it was seen occupies nothing any more.
    return [read_process(identity), *(item for item in started if not _has_ended(item))]


def _has_ended(reading: ProcessMemory | Unread) -> bool:
    return isinstance(reading, Unread) and reading.failure is ReadFailure.GONE


def _size_of(path: Path) -> FileSize:
    try:
        return FileSize(path.stat().st_size, page_cache_bytes(path))
    except OSError:
        return FileSize(None, None)
