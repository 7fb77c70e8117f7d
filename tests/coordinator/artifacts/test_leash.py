"""A leashed command ends like itself, and with all that it started when its starter dies."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from coordinator.artifacts.leash_linux import end_leashed, leashed

pytestmark = pytest.mark.integration
SECONDS = 60

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
STARTER = f"""
import subprocess, sys
from coordinator.artifacts.leash_linux import leashed
subprocess.run(leashed([sys.executable, "-c", {FAMILY!r}]), start_new_session=True)
"""


def start(*command):
    return subprocess.Popen(
        leashed(command), stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def run(code):
    process = start("/bin/sh", "-c", code)
    output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, output


@pytest.mark.parametrize(
    ("code", "ends_with"),
    [
        ("true", 0),
        ("exit 7", 7),
        *((f"kill -{number} $$", -number) for number in (1, 2, 9, 11, 13, 15)),
    ],
)
def test_it_ends_as_the_command_ends(code, ends_with):
    assert run(f"echo said; {code}") == (ends_with, "said\n")


def test_the_command_has_the_usual_signals():
    code = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
    _, output = run(code)
    blocked, ignored = (int(line.split()[1], 16) for line in output.splitlines())

    assert blocked == 0
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGCHLD - 1))


def test_all_that_it_started_is_gone_when_its_starter_is_killed():
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    grandchild = int(starter.stdout.readline())
    family = psutil.Process(starter.pid).children(recursive=True)
    assert grandchild in {each.pid for each in family}
    assert len(family) == 3

    starter.kill()
    starter.communicate()

    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert not alive


def test_all_that_it_started_is_gone_when_it_is_ended():
    process = start(sys.executable, "-c", FAMILY)
    process.stdout.readline()
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 2

    end_leashed(process)

    process.communicate(timeout=SECONDS)
    _, alive = psutil.wait_procs(family, timeout=SECONDS)
    assert not alive
    end_leashed(process)


def test_what_is_no_program_is_told_before_it_is_started(tmp_path):
    (tmp_path / "text").write_text("words")
    with pytest.raises(FileNotFoundError):
        leashed([str(tmp_path / "none")])
    with pytest.raises(PermissionError):
        leashed([str(tmp_path / "text")])
    with pytest.raises(FileNotFoundError):
        leashed([str(tmp_path)])
