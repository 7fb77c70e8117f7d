"""Which interpreter an environment is built with where the coordinator's own does not suit."""

import platform
from pathlib import Path

import pytest
import uv

from coordinator.reach.environments import EnvironmentBuilder
from coordinator.reach.interpreters import (
    fetch_interpreter,
    fetchable_python,
    find_interpreter,
)
from coordinator.reach.tool import UvTool
from stagewire.errors import EnvironmentBuildError, EnvironmentMissingError

pytestmark = pytest.mark.integration

NOT_OURS = f">=3.10,<3.14,!={platform.python_version()}"


class Machine:
    """A machine with the interpreters that a test gives it, as uv tells of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.uv = folder / "uv"
        self.write(
            self.uv,
            f"""
            case "$1 $2" in
            "python find") for word; do case $word in 3.*) version=$word ;; esac; done
                echo "find $version" >>{self.calls}
                case " $* " in *" --managed-python "*) kind=managed ;; *) kind=system ;; esac
                exec {folder}/$kind-$version ;;
            "python install") echo "$*" >>{self.calls}
                case " $* " in *" --offline "*) exit 3 ;; esac
                exec {folder}/download ;;
            *) exec {uv.find_uv_bin()} "$@" ;;
            esac
            """,
        )
        self.tool = UvTool(lambda _, __: None, self.uv)

    @staticmethod
    def write(path: Path, script: str) -> Path:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def python(self, version: str) -> Path:
        """An interpreter that answers what version it is."""
        answer = f'{{"version": "{version}", "abi": "abi", "platform": "linux"}}'
        return self.write(self.folder / f"python-{version}", f"echo '{answer}'")

    def knows(self, version: str, path: Path, kind: str = "system") -> None:
        self.write(self.folder / f"{kind}-{version}", f"echo {path}")

    def find(self, requires_python=NOT_OURS):
        return find_interpreter(requires_python, self.tool, self.folder)

    def fetch(self):
        return fetch_interpreter(NOT_OURS, self.tool, self.folder)


@pytest.fixture
def machine(tmp_path):
    folder = tmp_path / "machine"
    folder.mkdir()
    return Machine(folder)


def test_the_own_interpreter_is_taken_where_it_suits(machine):
    found = machine.find(f"=={platform.python_version()}")

    assert found.identity.version == platform.python_version()
    assert not machine.calls.exists()


def test_a_search_that_ends_at_a_broken_shim_goes_on_with_other_versions(machine):
    machine.write(machine.folder / "system-3.13", "echo 'pyenv: not found' >&2; exit 2")
    broken = machine.write(machine.folder / "broken", "exit 127")
    machine.knows("3.12", broken)
    machine.knows("3.11", machine.python("3.12.1"))
    machine.knows("3.10", machine.python("3.10.9"))

    found = machine.find(">=3.10,<3.12,!=" + platform.python_version())

    assert (found.path.name, found.identity.version) == ("python-3.10.9", "3.10.9")
    assert machine.find().identity.version == "3.12.1"
    calls = machine.calls.read_text().splitlines()
    assert calls == ["find 3.11", "find 3.10", "find 3.13", "find 3.12", "find 3.11"]


@pytest.mark.parametrize(
    ("requires_python", "version"),
    [(">=3.10,<3.14", "3.13"), ("==3.12.*", "3.12"), ("<3.12.5", "3.11"), (">=3.99", None)],
)
def test_the_newest_version_that_surely_suits_is_the_one_to_fetch(requires_python, version):
    assert fetchable_python(requires_python) == version


def test_an_interpreter_is_fetched_and_found_among_those_of_uv(machine):
    machine.write(machine.folder / "download", "exit 0")
    machine.knows("3.13", machine.python("3.13.2"), kind="managed")

    assert machine.find() is None
    assert machine.fetch().identity.version == "3.13.2"
    assert machine.calls.read_text().count("python install --no-bin 3.13") == 1


def test_a_download_that_fails_says_why_and_how_to_get_one_otherwise(machine):
    machine.write(machine.folder / "download", "echo 'no such host' >&2; exit 1")

    with pytest.raises(EnvironmentBuildError) as failure:
        machine.fetch()

    assert "no such host" in failure.value.message
    assert NOT_OURS in failure.value.message
    assert "uv python install 3.13" in failure.value.message


def test_without_permission_the_versions_and_the_way_to_get_one_are_named(machine, checkout):
    pyproject = checkout.worker / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('">=3.10"', f'"{NOT_OURS}"'))
    builder = EnvironmentBuilder(checkout.root, checkout.note, uv=machine.uv)

    assert builder.find(checkout.worker) is None
    assert builder.missing_python(checkout.worker) == "3.13"
    # The rest is estimated for the interpreter that would be fetched.
    assert builder.plan_download(checkout.worker).size_bytes > 1_000
    with pytest.raises(EnvironmentMissingError) as refusal:
        builder.ensure(checkout.worker, is_download_allowed=False)
    assert NOT_OURS in refusal.value.message
    assert "uv python install 3.13" in refusal.value.message
    assert "install" not in machine.calls.read_text()


def test_what_was_found_once_is_not_looked_for_again(machine, checkout):
    machine.knows("3.13", machine.python("3.13.2"))
    pyproject = checkout.worker / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('">=3.10"', f'"{NOT_OURS}"'))
    builder = EnvironmentBuilder(checkout.root, checkout.note, uv=machine.uv)

    for _ in range(3):
        assert builder.missing_python(checkout.worker) is None
    assert machine.calls.read_text().splitlines() == ["find 3.13"]
