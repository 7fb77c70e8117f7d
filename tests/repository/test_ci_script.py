"""`.ci/run` runs its phases in order, and stops at the first that fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
PHASES = ["disk", "packages", "environment", "check", "test", "end_to_end"]


class Checkout:
    """A copy of the scripts, beside stand-ins for the programs that they call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.programs = folder / "programs"
        self.cache = folder / "cache"
        (self.folder / ".ci").mkdir(parents=True)
        self.programs.mkdir()
        for name in ("run", ".ci/run", "uv.lock"):
            shutil.copy(ROOT / name, self.folder / name)
        self.add("uv", 'case $1 in --version) echo "uv 1.0.0" ;; *) echo "uv $*" ;; esac\n')
        self.add("df", "echo header; echo device 1 1 99999999 1% /\n")
        self.add("dpkg-query", "echo install ok installed\n")
        self.add("node", "")

    def add(self, name: str, script: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{script}")
        (self.programs / name).chmod(0o755)

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / ".ci/run"],
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "HOME": str(self.cache),
                "XDG_CACHE_HOME": str(self.cache),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_every_phase_runs_and_is_timed(checkout):
    result = checkout.run()
    assert result.returncode == 0, result.stderr
    calls = [line for line in result.stdout.splitlines() if line.startswith("uv ")]
    here = f"--project {checkout.folder}"
    assert calls == [
        "uv sync --locked",
        "uv run --locked poe check",
        f"uv run {here} --locked poe -C {checkout.folder} test",
        "uv run --locked poe end-to-end",
    ]
    timings = result.stdout.partition("== phases\n")[2].splitlines()
    assert [line.split()[0] for line in timings] == PHASES


def test_the_caches_of_the_tools_lie_outside_of_the_checkout(checkout):
    checkout.add("uv", 'echo "uv 1.0.0"; echo "$MYPY_CACHE_DIR" "$RUFF_CACHE_DIR" "$CI"\n')
    result = checkout.run()
    folder = next((checkout.cache / "stagewire/checks").iterdir())
    assert f"{folder}/mypy {folder}/ruff true\n" in result.stdout
    assert {path.name for path in checkout.folder.iterdir()} == {"run", ".ci", "uv.lock"}


def test_a_failed_check_ends_it_with_the_same_exit_code(checkout):
    checkout.add("uv", 'echo "uv 1.0.0"; case $* in *"poe check") exit 9 ;; esac\n')
    result = checkout.run()
    assert result.returncode == 9
    assert "== test" not in result.stdout
    assert result.stdout.splitlines()[-1].endswith("exit 9")


def test_a_phase_that_selects_no_test_is_a_failure(checkout):
    checkout.add("uv", 'echo "uv 1.0.0"; case $* in *end-to-end) exit 5 ;; esac\n')
    result = checkout.run()
    assert result.returncode == 5
    assert "end_to_end: no test was selected, which counts as a failure" in result.stdout


def test_too_little_disk_is_refused_with_the_missing_amount(checkout):
    checkout.add("df", "echo header; echo device 1 1 6290432 1% /\n")
    result = checkout.run()
    assert result.returncode == 1
    assert "free 1 MiB in .: the checks need 6 GiB" in result.stdout
    assert "== packages" not in result.stdout


def test_missing_system_packages_are_installed_and_named(checkout):
    checkout.add("dpkg-query", 'case $* in *libgomp1) echo "install ok installed" ;; esac\n')
    checkout.add("sudo", 'shift; "$@"\n')
    checkout.add("apt-get", 'echo "apt-get $*" >>"$HOME/apt"\n')
    result = checkout.run()
    assert "installing pocketsphinx-testdata\n" in result.stdout
    assert (checkout.cache / "apt").read_text().splitlines() == [
        "apt-get update -qq",
        "apt-get install -qq -y --no-install-recommends pocketsphinx-testdata",
    ]
