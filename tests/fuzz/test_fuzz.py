"""The fuzzer itself: a short run on every target, and proof that it would find a defect."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.fuzz_corpus import read
from testkit.fuzz_targets import CANARY, TARGETS

pytestmark = pytest.mark.integration

RUN = Path(__file__).with_name("run.py")
RUNS = 1500
IS_BUILT = "atheris" in {item.name for item in importlib.metadata.distributions()}


def fuzz(*arguments):
    return subprocess.run(
        [sys.executable, RUN, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.skipif(not IS_BUILT, reason="atheris is built for Linux on x86-64 only")
@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_no_defect(target):
    result = fuzz(target, "--runs", RUNS)
    assert result.returncode == 0, result.stdout + result.stderr
    executed = int(result.stdout.partition(": ")[2].split()[0])
    assert executed >= RUNS


@pytest.mark.skipif(not IS_BUILT, reason="atheris is built for Linux on x86-64 only")
def test_a_defect_is_found_and_its_input_kept(tmp_path):
    result = fuzz(CANARY, "--runs", 1_000_000, "--keep", tmp_path)
    assert result.returncode == 77, result.stdout + result.stderr
    assert "this reader has a defect" in result.stdout
    [raw] = read(tmp_path, CANARY).values()
    assert raw.startswith(b"!")


def test_an_unknown_target_is_refused():
    result = fuzz("nothing")
    assert result.returncode == 2
    assert f"known are {', '.join(TARGETS)}" in result.stderr
