"""What a process notes that it executes, as whoever started it reads it."""

import os
import subprocess
import sys
import threading

import pytest

from stagewire.record import ENTRIES, RECORD_BYTES, noted
from stagewire.worker.recorder import Recorder

pytestmark = pytest.mark.unit


@pytest.fixture
def record():
    descriptor = os.memfd_create("record")
    os.ftruncate(descriptor, RECORD_BYTES)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def recorder(record):
    recorder = Recorder()
    recorder.open(os.dup(record))
    return recorder


def read(record):
    return noted(os.pread(record, RECORD_BYTES, 0))


def test_what_runs_is_noted_as_long_as_it_runs(record, recorder):
    with recorder.executing(7):
        assert read(record) == {7}
        with recorder.executing(2**64 - 1):
            assert read(record) == {7, 2**64 - 1}
        assert read(record) == {7}
    assert read(record) == frozenset()


def test_what_fails_is_noted_no_longer(record, recorder):
    with pytest.raises(ZeroDivisionError), recorder.executing(7):
        raise ZeroDivisionError

    assert read(record) == frozenset()


def test_more_than_it_holds_is_not_noted_and_does_not_fail(record, recorder):
    go, ready = threading.Event(), threading.Barrier(ENTRIES + 3)

    def execute(execution_id):
        with recorder.executing(execution_id):
            ready.wait(60)
            go.wait(60)

    threads = [threading.Thread(target=execute, args=(number,)) for number in range(1, ENTRIES + 3)]
    for thread in threads:
        thread.start()
    ready.wait(60)

    assert len(read(record)) == ENTRIES
    go.set()
    for thread in threads:
        thread.join()
    assert read(record) == frozenset()


def test_without_memory_nothing_is_noted():
    with Recorder().executing(7):
        pass


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "ctypes.string_at(0)"])
def test_it_outlives_the_process_that_wrote_it(record, end):
    code = (
        "import ctypes, os\nfrom stagewire.worker.recorder import RECORDER\n"
        f"RECORDER.open({record})\nwith RECORDER.executing(7):\n    {end}\n"
    )

    subprocess.run([sys.executable, "-c", code], pass_fds=(record,), check=False)

    assert read(record) == {7}
