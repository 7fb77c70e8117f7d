"""`./run` finds uv or gets it, and passes on to it, with nothing but a POSIX shell."""

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SHELL_TOOLS = ("sh", "dirname", "mkdir", "rm", "mv", "cp", "cat", "awk", "chmod")
REAL_PYTHON = Path(sys.base_prefix, "bin", "python3")
LOCKED_VERSION = re.search(
    r'name = "uv"\nversion = "([^"]+)"', (ROOT / "uv.lock").read_text()
).group(1)

RECORDING_UV = """\
if [ "$1" = --version ]; then echo 'uv {version} (test)'; exit 0; fi
printf '%s\\n' '{label}' "$PWD" "$@"
exit {exit_code}
"""


@dataclass
class Machine:
    """A home and a PATH with a shell, its tools and nothing else."""

    home: Path
    programs: Path
    elsewhere: Path

    def add(self, name: str, script: str, folder: Path | None = None) -> Path:
        program = (folder or self.programs) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
        return program

    def add_uv(
        self,
        *,
        version: str = "0.8.0",
        label: str = "uv",
        exit_code: int = 0,
        folder: Path | None = None,
    ) -> None:
        script = RECORDING_UV.format(version=version, label=label, exit_code=exit_code)
        self.add("uv", script, folder)

    def add_python(self, *, without: tuple[str, ...] = ()) -> None:
        """Adds a python3 in which some modules fail when run, as on a plain Debian."""
        refusals = "".join(
            f'[ "$2" != {module} ] || {{ echo "{module} is not available"; exit 1; }}\n'
            for module in without
        )
        self.add("python3", f'{refusals}exec {REAL_PYTHON} "$@"\n')

    def run(
        self, *arguments: str, script: Path = ROOT / "run", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")
        }
        environment = {"HOME": str(self.home), "PATH": str(self.programs), **inherited, **variables}
        return subprocess.run(
            [script, *arguments],
            cwd=self.elsewhere,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def installed(self) -> list[str]:
        return sorted(str(p.relative_to(self.home)) for p in self.home.rglob("*") if p.is_file())


@pytest.fixture
def machine(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in SHELL_TOOLS:
        (programs / name).symlink_to(shutil.which(name))
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    return Machine(tmp_path / "home", programs, tmp_path / "elsewhere")


CACHED_UV = f".cache/stagewire/uv/{LOCKED_VERSION}/uv"
INSTALL_LOG = f".cache/stagewire/uv/{LOCKED_VERSION}/install.log"


def test_without_a_word_it_prints_its_usage_and_exits_64(machine):
    result = machine.run()
    assert result.returncode == 64
    assert "run demo" in result.stderr
    assert result.stdout == ""


def test_help_needs_no_uv(machine):
    result = machine.run("--help")
    assert result.returncode == 0
    assert "run test" in result.stdout


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        (
            ["demo", "--output", "a file.wav"],
            ["--locked", "--no-dev", "coordinator", "demo", "--output", "a file.wav"],
        ),
        (["status", "--json"], ["--locked", "--no-dev", "coordinator", "status", "--json"]),
        (
            ["test", "-m", "unit and not slow"],
            ["--locked", "poe", "-C", str(ROOT), "test", "-m", "unit and not slow"],
        ),
    ],
)
def test_words_reach_uv_as_they_were_written_and_paths_stay_relative_to_the_caller(
    machine, words, passed_on
):
    machine.add_uv()
    result = machine.run(*words)
    label, folder, *arguments = result.stdout.splitlines()
    assert label == "uv"
    assert folder == str(machine.elsewhere)
    assert arguments == ["run", "--project", str(ROOT), *passed_on]


def test_a_link_to_it_finds_the_project(machine):
    machine.add_uv()
    (machine.programs / "readlink").symlink_to(shutil.which("readlink"))
    link = machine.elsewhere / "stagewire"
    link.symlink_to(ROOT / "run")
    assert f"--project\n{ROOT}\n" in machine.run("status", script=link).stdout


def test_help_lists_the_commands_of_the_program(machine):
    machine.add_uv()
    assert machine.run("help").stdout.endswith("coordinator\n--help\n")


@pytest.mark.parametrize("word", ["--help", ""])
def test_its_usage_spells_it_as_it_was_typed_and_says_what_takes_long(machine, word):
    result = machine.run(*filter(None, [word]))
    usage = result.stdout + result.stderr
    for said in ("demo", "test", "COMMAND", "uv"):
        assert f" {ROOT / 'run'} {said}" in usage
    assert "./run" not in usage
    assert "about four minutes" in usage


@pytest.mark.parametrize(
    ("word", "told"), [("status", str(ROOT / "run")), ("test", "unset"), ("uv", "unset")]
)
def test_commands_are_told_how_they_were_started_and_tests_are_not(machine, word, told):
    version = "[ $1 = --version ] && echo 'uv 1.0.0' && exit\n"
    machine.add("uv", version + 'echo "${STAGEWIRE_PROGRAM-unset}"\n')
    assert machine.run(word).stdout == f"{told}\n"


def test_started_by_a_shell_it_is_spelled_as_a_path(machine):
    result = subprocess.run(
        ["sh", "run", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("usage: ./run demo ")


def test_the_word_uv_passes_on_to_uv_itself(machine):
    machine.add_uv()
    result = machine.run("uv", "sync", "--locked")
    assert result.stdout.splitlines()[2:] == ["sync", "--locked"]


def test_the_exit_code_is_that_of_the_command(machine):
    machine.add_uv(exit_code=75)
    assert machine.run("up").returncode == 75


def test_uv_in_the_home_is_found_without_a_path_to_it(machine):
    machine.add_uv(label="home uv", folder=machine.home / ".local/bin")
    assert machine.run("status").stdout.startswith("home uv\n")


def test_a_uv_that_is_too_old_is_passed_over(machine):
    machine.add_uv(version="0.7.22", label="old uv")
    machine.add_uv(label="home uv", folder=machine.home / ".local/bin")
    assert machine.run("status").stdout.startswith("home uv\n")


def test_an_active_environment_is_not_handed_on_and_a_python_of_the_system_is_preferred(machine):
    version = "[ $1 = --version ] && echo 'uv 1.0.0' && exit\n"
    machine.add("uv", version + 'echo "${VIRTUAL_ENV-unset} $UV_PYTHON_PREFERENCE"\n')
    assert machine.run("status", VIRTUAL_ENV="/elsewhere").stdout == "unset system\n"


@pytest.fixture
def fresh_checkout(tmp_path):
    """A checkout that was never run: it has no environment yet."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("run", "uv.lock"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_a_python_that_suits_the_workers_too_is_chosen_past_a_broken_one(machine, fresh_checkout):
    version = "[ $1 = --version ] && echo 'uv 1.0.0' && exit\n"
    machine.add("uv", version + 'echo "${UV_PYTHON-unset}"\n')
    machine.add("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127\n")
    machine.add("python3.12", f"echo {machine.programs}/python3.12\n")
    machine.add("python3.14", "echo /newest\n")
    run = fresh_checkout / "run"

    assert machine.run("status", script=run).stdout == f"{machine.programs}/python3.12\n"
    assert machine.run("status", script=run, UV_PYTHON="3.14").stdout == "3.14\n"
    # What the environment was made with stays; uv would make it again.
    (fresh_checkout / ".venv").mkdir()
    assert machine.run("status", script=run).stdout == "unset\n"


def test_where_no_such_python_is_there_uv_decides(machine, fresh_checkout):
    version = "[ $1 = --version ] && echo 'uv 1.0.0' && exit\n"
    machine.add("uv", version + 'echo "${UV_PYTHON-unset}"\n')
    machine.add("python3.14", "echo /newest\n")
    assert machine.run("status", script=fresh_checkout / "run").stdout == "unset\n"


def test_with_venv_and_pip_it_gets_the_locked_uv_once(machine):
    machine.add_python()
    first = machine.run("uv", "--version")
    assert first.stdout.startswith(f"uv {LOCKED_VERSION} "), first.stderr
    assert machine.installed() == [INSTALL_LOG, CACHED_UV]

    (machine.programs / "python3").unlink()
    second = machine.run("uv", "--version")
    assert second.stdout == first.stdout
    assert second.stderr == ""


def test_where_ensurepip_is_missing_it_gets_the_locked_uv_by_pip_alone(machine):
    machine.add_python(without=("venv",))
    result = machine.run("uv", "--version")
    assert result.stdout.startswith(f"uv {LOCKED_VERSION} "), result.stderr
    assert machine.installed() == [INSTALL_LOG, CACHED_UV]


def test_pipx_comes_before_pip_alone(machine):
    machine.add_python(without=("venv",))
    machine.add_uv(label="uv by pipx", folder=machine.home.parent / "made")
    made = machine.home.parent / "made/uv"
    machine.add("pipx", f'mkdir -p "$PIPX_BIN_DIR" && cp {made} "$PIPX_BIN_DIR/uv" && echo "$@"\n')
    result = machine.run("status")
    assert result.stdout.startswith("uv by pipx\n"), result.stderr
    assert f"install uv=={LOCKED_VERSION}" in (machine.home / INSTALL_LOG).read_text()


@pytest.mark.parametrize(("program", "option"), [("curl", "-o"), ("wget", "-O")])
def test_without_any_pip_it_uses_the_installer_of_uv(machine, program, option):
    machine.add_python(without=("venv", "pip"))
    made = machine.home.parent / "made"
    machine.add_uv(label="uv by installer", folder=made)
    install = f'mkdir -p "$UV_UNMANAGED_INSTALL" && cp {made}/uv "$UV_UNMANAGED_INSTALL"\n'
    machine.add("install.sh", install, folder=made)
    find_target = f'while [ "$1" != {option} ]; do echo "$1"; shift; done\n'
    machine.add(program, f'{find_target}cp {made}/install.sh "$2"\n')
    result = machine.run("status")
    assert result.stdout.startswith("uv by installer\n"), result.stderr
    log = (machine.home / INSTALL_LOG).read_text()
    assert f"https://astral.sh/uv/{LOCKED_VERSION}/install.sh" in log


def test_a_machine_with_nothing_is_told_in_one_line_what_to_install(machine):
    result = machine.run("demo")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("run: install uv, or one of: python3-venv")


def test_when_every_way_fails_the_log_is_named_and_nothing_else_is_left(machine):
    machine.add("curl", "echo no such host; exit 6\n")
    result = machine.run("demo")
    assert result.returncode == 1
    assert str(machine.home / INSTALL_LOG) in result.stderr
    assert machine.installed() == [INSTALL_LOG]
    assert "no such host" in (machine.home / INSTALL_LOG).read_text()


def test_a_home_that_cannot_be_written_is_named(machine):
    machine.add_python()
    not_a_folder = machine.home / "file"
    not_a_folder.touch()
    result = machine.run("demo", HOME=str(not_a_folder))
    assert result.returncode == 2
    assert result.stderr.startswith(f"run: cannot write to {not_a_folder}/.cache/stagewire/uv/")
    assert "XDG_CACHE_HOME" in result.stderr


def test_another_cache_folder_is_honoured(machine, tmp_path):
    cache = tmp_path / "cache"
    machine.add_uv(label="cached uv", folder=cache / "stagewire/uv" / LOCKED_VERSION)
    assert machine.run("status", XDG_CACHE_HOME=str(cache)).stdout.startswith("cached uv\n")


@pytest.mark.parametrize("script", ["run", ".ci/run"])
def test_the_scripts_can_be_executed(script):
    assert (ROOT / script).stat().st_mode & stat.S_IXUSR
