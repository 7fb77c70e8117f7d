"""Environments at either end of what our projects allow: what others publish, cached, and our own.

What `requirements/` pins is installed once, outside of the checkout, under a digest over the pins
and the interpreter. Our own projects are built as wheels in each run and installed beside it.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uv

from coordinator.reach.locking_linux import locked

ROOT: Final = Path(__file__).resolve().parents[2]
_PINS: Final = Path(__file__).resolve().parent / "requirements"
_NEWEST: Final = ("3.14", "3.13", "3.12", "3.11")
PYTHONS: Final = {
    # The coordinator needs 3.11; so does this machine's own test run.
    "oldest-sdk": ("3.10", "3.11"),
    "oldest-tests": ("3.10", "3.11"),
    "oldest-coordinator": ("3.11",),
    "newest-sdk": _NEWEST,
    "newest-coordinator": _NEWEST,
}
"""Of each environment the versions of Python that it may have, the best one first."""
_UNUSED_SECONDS: Final = 30 * 24 * 3600
_SECONDS: Final = 600


@dataclass(frozen=True)
class Python:
    """An interpreter of the machine."""

    path: Path
    version: str


@dataclass
class Shelf:
    """Makes the environments of one test run."""

    folder: Path
    cache: Path

    def make(self, name: str) -> Path:
        """Returns the interpreter of an environment that has the pins and our own projects."""
        python = find_python(PYTHONS[name])
        environment = self.folder / name
        _uv("venv", "--quiet", "--no-project", "--python", python.path, environment)
        site = next(environment.glob("lib/python*/site-packages"))
        (site / "pins.pth").write_text(f"{self._pins(name, python)}\n")
        found = environment / "bin" / "python"
        wheels = self._wheels("sdk", *([".", "sdk"] if name.endswith("coordinator") else []))
        _uv("pip", "install", "--quiet", "--no-deps", "--python", found, *wheels)
        return found

    def _pins(self, name: str, python: Python) -> Path:
        pins = _PINS / f"{name}.txt"
        digest = hashlib.sha256(pins.read_bytes() + python.version.encode()).hexdigest()
        folder = self.cache / f"{name}-{digest[:16]}"
        with locked(self.cache / f"{name}.lock", lambda: None):
            if not folder.is_dir():
                building = self.cache / f"{name}.building"
                shutil.rmtree(building, ignore_errors=True)
                install = ("pip", "install", "--quiet", "--require-hashes", "--compile-bytecode")
                where = ("--python", python.path, "--target", building)
                _uv(*install, *where, "--requirements", pins)
                building.rename(folder)
            os.utime(folder)
            for other in self.cache.glob(f"{name}-*"):
                if time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                    shutil.rmtree(other)
        return folder

    def _wheels(self, *projects: str) -> Iterator[Path]:
        for project in dict.fromkeys(projects):
            built = self.folder / "wheels" / ("root" if project == "." else project)
            if not built.is_dir():
                _uv("build", "--quiet", "--wheel", "--out-dir", built, ROOT / project)
            yield from built.glob("*.whl")


def find_python(versions: Sequence[str]) -> Python:
    """Returns the first of some versions of Python that this machine has."""
    variables = {**os.environ, "PYENV_VERSION": ":".join(_pyenv_versions())}
    # One of them stands for all others otherwise, as this run's own.
    variables.pop("VIRTUAL_ENV", None)
    for version in versions:
        command = [uv.find_uv_bin(), "python", "find", "--no-config", "--no-project"]
        command += ["--system", "--no-python-downloads", version]
        found = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if found.returncode == 0:
            path = Path(found.stdout.strip())
            code = "import platform; print(platform.python_version())"
            asked = [str(path), "-I", "-c", code]
            return Python(path, subprocess.check_output(asked, env=variables, text=True).strip())
    raise AssertionError(f"this machine has no Python {' or '.join(versions)}")


def _pyenv_versions() -> list[str]:
    """Returns what pyenv has: without a choice its programs in PATH only say that one is needed."""
    if (pyenv := shutil.which("pyenv")) is None:
        return []
    names = subprocess.run(
        [pyenv, "versions", "--bare", "--skip-aliases"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    # Backwards, because a plain `python3` is that of the first one.
    return [name for name in reversed(names.stdout.split()) if name[0].isdigit()]


def _uv(*arguments: object) -> None:
    command = [uv.find_uv_bin(), *map(str, arguments), "--no-config", "--no-progress"]
    done = subprocess.run(
        command, cwd="/", capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
