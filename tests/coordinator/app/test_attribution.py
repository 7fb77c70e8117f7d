"""What of the memory of a run is explained, and what is left."""

import pytest

from coordinator.app.attribution import COORDINATOR, FileSize, StageShare, attribute
from coordinator.app.processes import Occupation, RunningProcesses, RunningWorker
from coordinator.devices.process_memory import (
    MappingKind,
    MemoryMapping,
    ProcessIdentity,
    ProcessMemory,
    ReadFailure,
    Unread,
)

pytestmark = pytest.mark.unit
MIB = 1 << 20
MODEL = "/cache/model.bin"


def reading(pid, anonymous=0, model=0, libraries=0):
    mappings = (
        MemoryMapping(MODEL, MappingKind.FILE, model * MIB, model * MIB, 0),
        MemoryMapping("/lib/x.so", MappingKind.FILE, libraries * MIB, libraries * MIB, 0),
    )
    return ProcessMemory(
        ProcessIdentity(pid, 1),
        "python",
        anonymous * MIB,
        (model + libraries) * MIB,
        0,
        0,
        mappings,
    )


def occupation(stage, before, after, *files):
    sizes = (None, None) if before is None else (before * MIB, after * MIB)
    return Occupation(stage, "model" if files else "", files, *sizes)


def report(*stages, own=(), reserved=300, requests=50):
    worker = RunningWorker("a", ProcessIdentity(2, 1), 1, reserved * MIB, requests * MIB, stages)
    running = RunningProcesses(ProcessIdentity(1, 1), 96 * MIB, 0, (worker,))
    readings = {COORDINATOR: [reading(1, 40)], "a": own or [reading(2, 200, 30, 20)]}
    return attribute(running, readings, {MODEL: FileSize(64 * MIB, 60 * MIB)})


def test_base_loads_and_remainder_add_up_to_the_anonymous_memory():
    found = report(occupation("one", 30, 100, MODEL), occupation("two", 100, 180))

    worker = found.occupants[1]
    assert worker.base_bytes == 30 * MIB
    assert worker.stages == (StageShare("one", 70 * MIB), StageShare("two", 80 * MIB))
    assert worker.remainder_bytes == 20 * MIB
    assert worker.remainder_share == pytest.approx(0.1)
    assert worker.counted_bytes == 230 * MIB
    assert worker.model_bytes == 30 * MIB
    assert worker.file_bytes == 50 * MIB
    assert not worker.is_over
    assert found.total_bytes == (40 + 200 + 50) * MIB
    assert found.remainder_bytes == 20 * MIB
    assert found.arena_bytes == 0


def test_the_base_is_that_of_the_load_that_came_first_whatever_the_order_of_the_plan():
    found = report(occupation("one", 100, 120), occupation("two", 30, 100))

    assert found.occupants[1].base_bytes == 30 * MIB


def test_a_file_of_two_stages_counts_once_and_names_both():
    found = report(occupation("one", 30, 100, MODEL), occupation("two", 100, 180, MODEL))

    assert found.occupants[1].model_bytes == 30 * MIB
    [file] = found.model_files
    assert file.stages == ("one", "two")
    assert (file.size_bytes, file.mapped_bytes, file.cached_bytes) == (64 * MIB, 30 * MIB, 60 * MIB)


def test_what_a_worker_started_counts_with_it():
    own = [reading(2, 200), reading(3, 25, model=5)]

    worker = report(occupation("one", 30, 100, MODEL), own=own).occupants[1]

    assert worker.anonymous_bytes == 225 * MIB
    assert worker.remainder_bytes == 125 * MIB
    assert worker.model_bytes == 5 * MIB


def test_without_a_base_there_is_no_remainder():
    found = report(occupation("one", None, None), occupation("two", 30, 40))

    worker = found.occupants[1]
    assert (worker.base_bytes, worker.stages) == (None, ())
    assert (worker.remainder_bytes, worker.remainder_share) == (None, None)
    assert report().occupants[1].remainder_bytes is None


def test_less_than_was_loaded_leaves_no_remainder():
    worker = report(occupation("one", 30, 250)).occupants[1]

    assert worker.remainder_bytes == 0


def test_more_than_is_reserved_is_over():
    assert report(occupation("one", 30, 100, MODEL), reserved=229).occupants[1].is_over


def test_a_part_that_cannot_be_read_leaves_no_remainder_and_is_named():
    hidden = Unread(ProcessIdentity(3, 1), ReadFailure.DENIED, "permission denied")

    worker = report(occupation("one", 30, 100), own=[reading(2, 200), hidden]).occupants[1]

    assert worker.remainder_bytes is None
    assert worker.unread == (hidden,)
    assert worker.anonymous_bytes == 200 * MIB
