"""What the kernel says of the memory of a process, and that only the right one is ever read."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.devices.process_memory import (
    MappingKind,
    ProcessIdentity,
    ReadFailure,
    Unread,
    mappings_of,
    sizes_of,
)
from coordinator.devices.process_memory_linux import (
    descendants_of,
    identity_of,
    is_alive,
    page_cache_bytes,
    read_process,
)

pytestmark = pytest.mark.integration
MIB = 1 << 20

SMAPS = b"""\
55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
Rss:                 100 kB
Pss:                  90 kB
SwapPss:               8 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000100000 r--p 00000000 08:01 1234                       /srv/a model-b.bin
Size:               1024 kB
Rss:                 512 kB
Pss:                 256 kB
THPeligible:           0
7f1000100000-7f1000200000 r--p 00100000 08:01 1234             /srv/a model-b.bin (deleted)
Rss:                  40 kB
Pss:                  40 kB
7f2000000000-7f2000001000 rw-p 00000000 00:00 0
Rss:                   4 kB
Pss:                   4 kB
7f3000000000-7f3000001000 rw-s 00000000 00:01 77                         /memfd:arena (deleted)
Rss:                   8 kB
Pss:                   2 kB
"""


def test_mappings_of_one_name_are_added_up_the_largest_first():
    found = mappings_of(SMAPS)

    assert [
        (item.name, item.kind, item.pss_bytes >> 10, item.rss_bytes >> 10, item.swap_bytes >> 10)
        for item in found
    ] == [
        ("/srv/a model-b.bin", MappingKind.FILE, 296, 552, 0),
        ("[heap]", MappingKind.ANONYMOUS, 90, 100, 8),
        ("[anonymous]", MappingKind.ANONYMOUS, 4, 4, 0),
        ("/memfd:arena", MappingKind.SHARED, 2, 8, 0),
    ]


def test_nothing_is_read_from_nothing():
    assert mappings_of(b"") == ()
    assert sizes_of(b"") == {}


@contextmanager
def process(code: str) -> Iterator[ProcessIdentity]:
    """Runs Python in a process that says when it is there and ends with the block."""
    command = [sys.executable, "-c", f"{code}\nprint('here', flush=True)\ninput()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout.readline() == b"here\n"
        identity = identity_of(started.pid)
        assert identity is not None
        try:
            yield identity
        finally:
            started.kill()


def test_memory_of_its_own_is_anonymous_and_a_file_is_a_file(tmp_path):
    model = tmp_path / "model.bin"
    model.write_bytes(os.urandom(8 * MIB))
    keeps = f"""
import mmap
own = bytearray(b'1' * {24 * MIB})
file = open({str(model)!r}, 'rb')
pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
read = sum(pages[i] for i in range(0, len(pages), 4096))
"""
    with process("pass") as bare, process(keeps) as full:
        before, after = read_process(bare), read_process(full)

    grown = after.anonymous_bytes - before.anonymous_bytes
    assert 24 * MIB <= grown < 26 * MIB
    assert after.bytes_of(str(model)) == 8 * MIB
    assert before.bytes_of(str(model)) == 0
    assert after.mappings[0].kind is MappingKind.ANONYMOUS
    assert after.total_bytes == after.anonymous_bytes + after.file_bytes + after.shared_bytes


def test_shared_memory_is_told_apart():
    code = f"import mmap; shared = mmap.mmap(-1, {8 * MIB}); shared.write(b'1' * {8 * MIB})"
    with process(code) as identity:
        found = read_process(identity)

    assert 8 * MIB <= found.shared_bytes < 9 * MIB


def test_a_process_that_ended_is_gone_also_before_its_parent_notes_it():
    with subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.DEVNULL) as started:
        identity = identity_of(started.pid)
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
        assert read_process(identity) == Unread(identity, ReadFailure.GONE, "it has ended")
        assert is_alive(identity), "its id is still its own"
    assert read_process(identity).failure is ReadFailure.GONE
    assert not is_alive(identity)


def test_another_process_that_has_the_id_is_never_read():
    own = identity_of(os.getpid())
    earlier = ProcessIdentity(own.pid, own.start_ticks - 1)

    found = read_process(earlier)

    assert found == Unread(earlier, ReadFailure.GONE, "it has ended; its id is another's now")
    assert not is_alive(earlier)
    assert descendants_of(earlier) == ()


def test_what_a_process_started_is_found_also_without_its_parent():
    orphan = "import os; os.fork() and os._exit(0); import time; time.sleep(600)"
    code = f"""
import os, subprocess, sys
os.setsid()
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
left = subprocess.Popen([sys.executable, '-c', {orphan!r}]).wait()
"""
    with process(code) as identity:
        found = descendants_of(identity)
        parents = {os.getsid(item.pid) for item in found}
        assert len(found) == 2
        assert parents == {identity.pid}
        for item in found:
            os.kill(item.pid, 9)


def test_the_cache_of_the_machine_holds_what_was_just_written(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(os.urandom(3 * MIB + 5))

    assert page_cache_bytes(path) == 3 * MIB + 5
    assert page_cache_bytes(tmp_path / "none") is None
    (tmp_path / "empty").touch()
    assert page_cache_bytes(tmp_path / "empty") == 0


def test_pages_that_were_given_up_are_not_held(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(os.urandom(4 * MIB))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        held = page_cache_bytes(path)

    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True
    ).stdout.strip()
    # A file system in memory gives nothing up.
    assert held == (4 * MIB if kind == "tmpfs" else 0)
