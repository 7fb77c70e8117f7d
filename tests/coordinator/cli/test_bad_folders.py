"""Folders held wrong: each ends in a sentence that says what to do, and leaves nothing behind."""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from stagewire.errors import ExitCode
from testkit import plans
from testkit.namespaces import unshare

pytestmark = pytest.mark.integration

WEIGHTS = b"weights" * 1000
FOREIGN_USER = 12345


@pytest.fixture
def plan(program):
    """A plan with an artifact, so that the cache is needed."""
    return write_plan(program.root)


def write_plan(folder):
    (folder / "model.bin").write_bytes(WEIGHTS)
    file = {
        "path": "model.bin",
        "sha256": hashlib.sha256(WEIGHTS).hexdigest(),
        "size": len(WEIGHTS),
        "from": "file:model.bin",
    }
    content = plans.single()
    content["stages"]["one"]["artifact"] = "m"
    content["artifacts"] = {"m": {"format": "fake:bytes", "licence": "MIT", "files": [file]}}
    return plans.write(folder, content)


@pytest.fixture
def cache(program):
    return program.root / "cache"


def refusal(program, plan, *, before=(), code=ExitCode.REFUSED, **environment):
    """Brings a plan up, which must be refused; returns what was said."""
    result = program.run("up", "--plan", plan, "--yes", before=before, **environment)
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not (program.state / "endpoint.json").exists()
    assert list(program.temporary.iterdir()) == []
    return " ".join(result.stderr.split())


def assert_it_comes_up(program, plan, *arguments):
    up = program.up(plan, "--yes", *arguments)
    up.send(signal.SIGTERM)
    assert up.end() == 0


def mounted(folder, options):
    """Runs a command that sees a folder mounted in another way."""
    script = 'mount --bind "$2" "$2" && mount -o "remount,bind,$1" "$2" && shift 2 && exec "$@"'
    return [*unshare("mount"), "sh", "-c", script, "sh", options, str(folder)]


def small(folder, size):
    """Runs a command that sees a small empty disk at a folder."""
    script = 'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2" && shift 2 && exec "$@"'
    return [*unshare("mount"), "sh", "-c", script, "sh", size, str(folder)]


def full(folder, size="64k"):
    """Runs a command that sees a full disk at a folder."""
    script = (
        'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2"'
        ' && { cat /dev/zero > "$2/filler" 2> /dev/null; shift 2; exec "$@"; }'
    )
    return [*unshare("mount"), "sh", "-c", script, "sh", size, str(folder)]


# --- the cache ---


def test_a_cache_that_is_a_file(program, plan, cache):
    cache.write_text("a file")
    assert "is no folder; move it away, or name another" in refusal(program, plan)
    assert cache.read_text() == "a file"


def test_a_cache_that_is_a_link_to_a_folder_that_is_not_there_yet(program, plan, cache):
    cache.symlink_to(program.root / "elsewhere")
    assert_it_comes_up(program, plan)
    assert (program.root / "elsewhere" / "files").is_dir()


def test_a_cache_that_is_a_link_to_itself(program, plan, cache):
    cache.symlink_to(cache)
    assert "STAGEWIRE_CACHE" in refusal(program, plan)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user(program, plan, cache):
    cache.mkdir()
    os.chown(cache, FOREIGN_USER, -1)
    assert "belongs to another user, who could change what is run" in refusal(program, plan)
    assert list(cache.iterdir()) == []


def test_a_cache_that_others_may_write_is_closed_to_them(program, plan, cache):
    cache.mkdir()
    cache.chmod(0o777)
    assert_it_comes_up(program, plan)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o755


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_with_something_else_that_others_may_write(program, plan, cache, mode):
    (cache / "something else").mkdir(parents=True)
    cache.chmod(mode)
    said = refusal(program, plan)
    assert f"close it with `chmod go-w {cache}`" in said
    assert [each.name for each in cache.iterdir()] == ["something else"]
    assert stat.S_IMODE(cache.stat().st_mode) == mode


def test_a_cache_that_cannot_be_written(program, plan, cache):
    cache.mkdir()
    said = refusal(program, plan, before=mounted(cache, "ro"))
    assert "Read-only file system; name another folder with STAGEWIRE_CACHE" in said


def test_a_cache_that_cannot_be_written_and_has_everything(program, plan, cache):
    assert program.run("artifacts", "pull", "--plan", plan, "--yes").returncode == 0
    up = program.start("up", "--plan", plan, before=mounted(cache, "ro"))
    up.wait_for("READY")
    up.send(signal.SIGTERM)
    assert up.end() == 0


def test_a_disk_of_the_cache_that_is_full(program, plan, cache):
    cache.mkdir()
    said = refusal(program, plan, before=full(cache))
    assert f"needs at least 6.8 KiB ({len(WEIGHTS)} bytes) free" in said


def test_a_folder_above_the_cache_that_is_a_file(program, plan):
    (program.root / "file").write_text("")
    said = refusal(program, plan, STAGEWIRE_CACHE=str(program.root / "file" / "cache"))
    assert "File exists; name another folder with STAGEWIRE_CACHE" in said


# --- the state folder ---


def test_a_state_folder_that_is_a_file(program, plan):
    program.state.write_text("")
    assert "name another with --state" in refusal(program, plan)


def test_a_state_folder_that_cannot_be_written(program, plan):
    program.state.mkdir(mode=0o700)
    said = refusal(program, plan, before=mounted(program.state, "ro"))
    assert "Read-only file system; name another with --state" in said


def test_a_disk_of_the_state_folder_that_is_full(program, plan):
    program.state.mkdir(mode=0o700)
    said = refusal(program, plan, before=full(program.state))
    assert "DISK_FULL" in said
    assert str(program.state) in said


def test_a_disk_of_the_state_folder_that_fills_while_it_runs(program, plan):
    program.state.mkdir(mode=0o700)
    up = program.start("up", "--plan", plan, "--yes", before=small(program.state, "200k"))
    up.wait_for("READY")
    inside = ("nsenter", "-t", str(up.process.pid), "-m")
    fill = ("sh", "-c", 'cat /dev/zero > "$1" || true', "sh", str(program.state / "filler"))
    assert (
        b"No space left"
        in subprocess.run([*inside, *fill], capture_output=True, check=False).stderr
    )
    workers = up.children()
    for worker in workers:
        worker.kill()
    up.wait_for("reason=WORKER_LOST")
    status = program.run("status", before=inside)
    assert (status.returncode, "WORKER_LOST" in status.stdout) == (0, True), status.stderr
    assert program.run("down", before=inside).returncode == 0
    assert up.end() == 0
    assert "Traceback" not in up.output


def test_a_log_whose_disk_is_full_says_so_once(program):
    folder = program.root / "logs"
    folder.mkdir()
    code = (
        "import logging, pathlib, sys; from coordinator.app.log_file import logging_to\n"
        "with logging_to(pathlib.Path(sys.argv[1])):\n"
        "    for number in range(1000): logging.getLogger('coordinator').info('x' * 100)\n"
    )
    result = subprocess.run(
        [*full(folder), sys.executable, "-c", code, str(folder / "coordinator.log")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, len(result.stderr.splitlines())) == (0, 1), result.stderr
    assert "cannot be written: No space left on device; lines are lost" in result.stderr


def test_a_state_folder_that_is_removed_while_it_runs(program, plan):
    up = program.up(plan, "--yes")
    workers = up.children()
    shutil.rmtree(program.state)
    assert program.run("status").returncode == ExitCode.FAULT
    up.send(signal.SIGTERM)
    assert up.end() == 0
    assert not [worker for worker in workers if worker.is_running()]


# --- the home folder, and that of temporary files ---

OWN_FOLDERS = {"STAGEWIRE_STATE": "", "STAGEWIRE_CACHE": ""}


@pytest.mark.parametrize("home", ["", "relative", "./here"])
def test_a_home_that_is_no_path(program, plan, home):
    said = refusal(program, plan, HOME=home, **OWN_FOLDERS)
    assert f"HOME is {home!r}, which is no absolute path; set it" in said


def test_a_home_that_cannot_be_written(program, plan):
    said = refusal(program, plan, HOME="/proc", **OWN_FOLDERS)
    assert "the state folder /proc/.local/state/stagewire cannot be used" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that nobody knows")
def test_a_user_without_a_home(program, plan):
    del program.environment["HOME"]
    # Whoever enters the folder of a test must be let in, also below.
    for folder in (program.root, *program.root.parents):
        if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o077 == 0:
            folder.chmod(0o755)
    nobody = ("setpriv", "--reuid", str(FOREIGN_USER), "--clear-groups")
    said = refusal(program, plan, before=nobody, **OWN_FOLDERS)
    assert "set HOME, or name the folders with STAGEWIRE_STATE and STAGEWIRE_CACHE" in said


def test_without_a_folder_of_temporary_files_it_comes_up_all_the_same(program, plan):
    program.environment["TMPDIR"] = str(program.root / "none")
    assert_it_comes_up(program, plan)
    assert not (program.root / "none").exists()


# --- names ---


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "new\nline",
        "\u00fcml\u00e4ut \u2603",
        "-dash",
        "it's",
        "$x;",
    ],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_folders_of_any_name(program, name, locale):
    folder = program.root / name
    folder.mkdir()
    program.environment |= {
        "LC_ALL": locale,
        "PYTHONCOERCECLOCALE": "0",
        "STAGEWIRE_CACHE": str(folder / "cache"),
        "STAGEWIRE_STATE": str(folder / "state"),
    }
    program.state = folder / "state"
    assert_it_comes_up(program, write_plan(folder))
    listed = program.run("artifacts", "list")
    assert (listed.returncode, "m" in listed.stdout) == (0, True), listed.stderr


def test_a_cache_whose_name_is_no_text_is_refused_and_a_state_folder_is_not(program, plan):
    odd = program.root / os.fsdecode(b"not \xff utf-8")
    odd.mkdir()
    assert "is not UTF-8" in refusal(program, plan, STAGEWIRE_CACHE=str(odd / "cache"))
    assert_it_comes_up(program, plan, "--state", odd / "state")


# --- the mask of new files ---


@pytest.mark.parametrize("mask", ["000", "022", "077"])
def test_whatever_the_mask_nobody_else_may_enter_what_it_makes(program, plan, cache, mask):
    up = program.start(
        "up", "--plan", plan, "--yes", before=("sh", "-c", f'umask {mask}; exec "$@"', "sh")
    )
    up.wait_for("READY")
    up.send(signal.SIGTERM)
    assert up.end() == 0
    for folder in (cache, program.state):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
