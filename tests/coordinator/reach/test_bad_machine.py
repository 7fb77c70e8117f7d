"""Machines on which an environment cannot be built: one sentence says what to do; nothing is left.

Each is tried with the real uv in a process of its own, which sees that machine.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stagewire.errors import EnvironmentBuildError, EnvironmentMissingError
from testkit.namespaces import unshare

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).parents[3]
SECONDS = 300

# Blocked before anything of ours is imported: a Python that was built without them.
BUILD = """
import json, sys
root, worker, *blocked = sys.argv[1:]
sys.modules.update(dict.fromkeys(blocked))
from pathlib import Path
from coordinator.reach.environments import EnvironmentBuilder
from stagewire.errors import StageError
builder = EnvironmentBuilder(Path(root), lambda phase, detail: None)
try:
    environment = builder.ensure(Path(worker), is_download_allowed=True)
    with environment.in_use():
        print(json.dumps(["", str(environment.python)]))
except StageError as error:
    print(json.dumps([error.reason, error.message]))
"""


def build(checkout, *blocked, before=(), **environment):
    """Builds in a process; returns the reason and the words of its failure, or "" and the path."""
    done = subprocess.run(
        [*before, sys.executable, "-c", BUILD, str(checkout.root), str(checkout.worker), *blocked],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_nothing_is_left(checkout):
    folders = [each for each in checkout.home.glob("*") if each.is_dir()]
    assert folders == []


def shell(script, *arguments):
    return ("sh", "-c", f'{script} && exec "$@"', "sh", *arguments)


def mounted(folder, options):
    """Sees a folder mounted in another way."""
    folder.mkdir(exist_ok=True)
    script = f'mount --bind "$1" "$1" && mount -o remount,bind,{options} "$1" && shift'
    return [*unshare("mount"), *shell(script, str(folder))]


def small(folder, size):
    """Sees a small empty disk at a folder."""
    folder.mkdir(exist_ok=True)
    script = f'mount -t tmpfs -o "size={size},mode=700" tmpfs "$1" && shift'
    return [*unshare("mount"), *shell(script, str(folder))]


# --- disks ---


@pytest.mark.parametrize("size", ["40k", "300k"])
def test_a_disk_of_the_cache_that_fills(checkout, size):
    reason, message = build(checkout, before=small(checkout.root, size))
    assert reason == "DISK_FULL"
    assert "free space" in message


def test_a_disk_of_the_cache_of_uv_that_fills(checkout, tmp_path):
    folder = tmp_path / "uv"
    reason, message = build(checkout, before=small(folder, "40k"), UV_CACHE_DIR=str(folder))
    assert reason == "DISK_FULL"
    assert str(folder) in message
    assert_nothing_is_left(checkout)


def test_a_cache_that_cannot_be_written(checkout):
    reason, message = build(checkout, before=mounted(checkout.root, "ro"))
    assert reason == "PATH_FORBIDDEN"
    assert "Read-only file system; name another folder with STAGEWIRE_CACHE" in message


def test_a_cache_that_cannot_be_written_and_has_the_environment(built):
    found = built.builder_without_tools().find(built.worker)
    assert build(built, before=mounted(built.root, "ro")) == ["", str(found.python)]


@pytest.mark.parametrize("state", ["checkout", "built"])
def test_a_cache_from_which_no_library_can_be_loaded(request, state):
    checkout = request.getfixturevalue(state)
    reason, message = build(checkout, before=mounted(checkout.root, "noexec"))
    assert reason == "ENVIRONMENT_BROKEN"
    assert "mounted noexec" in message
    assert "name another folder with STAGEWIRE_CACHE" in message


def test_a_cache_of_uv_that_is_no_folder(checkout):
    reason, message = build(checkout, UV_CACHE_DIR="/dev/null")
    assert reason == "ENVIRONMENT_BUILD_FAILED"
    assert "UV_CACHE_DIR" in message
    assert_nothing_is_left(checkout)


def test_a_folder_of_temporary_files_that_is_not_there(checkout, tmp_path):
    assert build(checkout, TMPDIR=str(tmp_path / "none"))[0] == ""


@pytest.mark.parametrize("mask", ["000", "077"])
def test_whatever_the_mask_nobody_else_may_write_where_it_lies(checkout, mask):
    assert build(checkout, before=shell(f"umask {mask}"))[0] == ""
    assert checkout.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["with space", "\u00fcml\u00e4ut \u2603", "it's; $x", "new\nline"])
def test_a_cache_of_any_name(checkout, tmp_path, name):
    checkout.root = tmp_path / name / "cache"
    reason, message = build(checkout, LC_ALL="C")
    assert reason == "", message


# --- limits and time ---


def test_too_few_files_may_be_open(checkout):
    # A few are needed to begin at all; this many are not enough for a build.
    reason, message = build(checkout, before=shell("ulimit -n 14"))
    assert reason in ("PROCESS_LIMIT", "ENVIRONMENT_BUILD_FAILED")
    assert "raise `ulimit -n`" in message
    assert_nothing_is_left(checkout)


def test_files_from_the_future_are_as_good_as_any(built):
    for path in (built.root, *built.root.rglob("*")):
        if not path.is_symlink():
            os.utime(path, (5e9, 5e9))
    before = built.builder_without_tools().find(built.worker)
    assert before is not None

    built.edit_sdk("later than the future")

    reason, python = build(built)
    assert (reason, python != str(before.python)) == ("", True)


# --- tools ---


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        ("#!/bin/sh\nexit 1\n", "uv sync --reinstall-package uv"),
        ("#!/bin/sh\nkill -SEGV $$\n", "uv sync --reinstall-package uv"),
        ("this is no program", "uv sync --reinstall-package uv"),
        ("#!/bin/sh\necho \"error: unexpected argument '--x' found\" >&2\nexit 2\n", "too old"),
    ],
    ids=["fails", "crashes", "no program", "too old"],
)
def test_a_uv_that_does_not_work(checkout, tmp_path, program, remedy):
    uv = tmp_path / "uv-program"
    uv.write_text(program)
    uv.chmod(0o755)
    with pytest.raises(EnvironmentBuildError) as caught:
        checkout.builder(uv=uv).ensure(checkout.worker, is_download_allowed=True)
    assert remedy in caught.value.message
    assert_nothing_is_left(checkout)


def test_a_uv_that_may_not_be_run_or_is_not_there(checkout, tmp_path):
    uv = tmp_path / "uv-program"
    for prepare in (lambda: None, lambda: uv.write_text("")):
        prepare()
        with pytest.raises(EnvironmentBuildError, match="uv sync"):
            checkout.builder(uv=uv).ensure(checkout.worker, is_download_allowed=True)


def test_a_python_without_what_distributions_leave_out_is_enough(checkout):
    assert build(checkout, "ssl", "_ssl", "venv", "ensurepip", "pip", "lzma", "sqlite3")[0] == ""


# --- what is taken away ---


def test_a_cache_that_is_removed_is_filled_again_by_the_same_builder(built):
    builder = built.builder()
    before = builder.ensure(built.worker, is_download_allowed=True)
    shutil.rmtree(built.root)
    assert builder.find(built.worker) is None
    assert builder.mend(built.worker, is_download_allowed=True).key == before.key
    assert before.python.exists()


def test_a_cache_that_is_removed_is_missed_where_nothing_may_be_fetched(
    built, tmp_path, monkeypatch
):
    builder = built.builder()
    builder.ensure(built.worker, is_download_allowed=True)
    shutil.rmtree(built.root)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentMissingError, match=r"worker-tiny: up to .* must be downloaded"):
        builder.mend(built.worker, is_download_allowed=False)
