"""What a process says that it occupies, against files and against what it really does."""

import mmap
import os

import pytest

from stagewire.worker.memory import make_meter
from stagewire.worker.memory_linux import LinuxMeter

pytestmark = pytest.mark.unit

ROLLUP = """55d0-7ffe ---p 00000000 00:00 0 [rollup]
Rss:               90000 kB
Pss:               80000 kB
Pss_Anon:          50000 kB
Pss_File:          30000 kB
"""
MAPS = """7f00-7f10 r--s 00000000 08:01 12 /models/a model.bin
Size:               2000 kB
Pss:                1000 kB
Pss_Dirty:             0 kB
7f10-7f20 r-xp 00000000 08:01 13 /usr/lib/library.so
Pss:                 500 kB
7f20-7f30 rw-p 00000000 00:00 0
Pss:                 700 kB
7f30-7f40 r--s 00001000 08:01 12 /models/a model.bin
Pss:                 250 kB
7f40-7f50 r--s 00000000 08:01 14 /else where /models/a model.bin
Pss:                 125 kB
"""
MODELS = frozenset({"/models/a model.bin"})


@pytest.fixture
def meter(tmp_path):
    (tmp_path / "smaps_rollup").write_text(ROLLUP)
    (tmp_path / "smaps").write_text(MAPS)
    return make_meter(tmp_path)


def test_anonymous_memory_and_pages_of_models_count_and_libraries_do_not(meter):
    usage = meter.measure(MODELS)

    assert usage.anonymous_pss_bytes == 50_000 << 10
    assert usage.model_file_bytes == 1250 << 10
    assert usage.total_bytes == 51_250 << 10


def test_a_worker_without_models_maps_none(meter):
    assert meter.measure(frozenset()).model_file_bytes == 0


@pytest.fixture
def shrink(tmp_path):
    """Halves the first mapping of the model; the rollup says that all files have `file_kib`."""

    def change(file_kib):
        (tmp_path / "smaps").write_text(MAPS.replace("1000 kB", " 500 kB"))
        (tmp_path / "smaps_rollup").write_text(ROLLUP.replace("30000 kB", f"{file_kib} kB"))

    return change


def test_the_full_map_is_not_read_again_while_nothing_moves(meter, shrink):
    before = meter.measure(MODELS)
    shrink(29_000)
    assert meter.measure(MODELS) == before


def test_the_full_map_is_read_again_when_pages_of_files_move(meter, shrink):
    meter.measure(MODELS)
    shrink(28_000)
    assert meter.measure(MODELS).model_file_bytes == 750 << 10


def test_the_full_map_is_read_again_for_other_files(meter, shrink):
    meter.measure(MODELS)
    shrink(30_000)
    assert meter.measure(MODELS | {"/models/b"}).model_file_bytes == 750 << 10


def test_the_full_map_is_read_again_after_a_while(meter, shrink, tmp_path):
    impatient = LinuxMeter(tmp_path, known_seconds=0.0)
    impatient.measure(MODELS)
    shrink(30_000)
    assert impatient.measure(MODELS).model_file_bytes == 750 << 10


def test_memory_that_is_touched_shows(tmp_path):
    meter = make_meter()
    path = tmp_path / "model.bin"
    path.write_bytes(b"m" * (8 << 20))
    before = meter.measure(frozenset({str(path)}))
    touched = bytearray(os.urandom(1 << 20) * 32)

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0
        after = meter.measure(frozenset({str(path)}))

    assert after.anonymous_pss_bytes - before.anonymous_pss_bytes > 30 << 20
    assert after.model_file_bytes == 8 << 20
    assert len(touched) == 32 << 20
