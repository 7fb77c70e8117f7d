"""The import check: whether the libraries of an environment can be loaded on this machine."""

import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coordinator.artifacts.trouble import said
from coordinator.reach.interpreters import run_script
from stagewire.errors import EnvironmentBrokenError

CHECK_SECONDS: Final = 300.0
_SHOWN_LINES: Final = 20
_SCRIPT: Final = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
_MISSING_LIBRARY: Final = re.compile(r"([\w.+-]+\.so[\w.]*): cannot open shared object file")
_PACKAGES: Final = {
    "libGL.so.1": "libgl1",
    "libasound.so.2": "libasound2",
    "libatomic.so.1": "libatomic1",
    "libespeak-ng.so.1": "libespeak-ng1",
    "libgfortran.so.5": "libgfortran5",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libnuma.so.1": "libnuma1",
    "libopenblas.so.0": "libopenblas0",
    "libportaudio.so.2": "libportaudio2",
    "libsndfile.so.1": "libsndfile1",
    "libstdc++.so.6": "libstdc++6",
    "libvulkan.so.1": "libvulkan1",
    "libz.so.1": "zlib1g",
}


class SystemLibraryMissingError(EnvironmentBrokenError):
    """A shared library of the machine is missing; building the environment again does not help."""


def check_imports(python: Path, modules: Sequence[str], name: str) -> None:
    """Imports modules in a process of the environment.

    Raises:
        SystemLibraryMissingError: a shared library is missing; the message has the apt line.
        EnvironmentBrokenError: an import failed otherwise.
    """
    try:
        result = run_script(python, _SCRIPT, *modules, timeout_seconds=CHECK_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentBrokenError(
            f"importing {', '.join(modules)} for {name} took longer than {CHECK_SECONDS:.0f} s"
        ) from error
    except OSError as error:
        raise EnvironmentBrokenError(
            f"the interpreter of {name} cannot be run: {said(error)}"
        ) from error
    if result.returncode == 0:
        return
    missing = _MISSING_LIBRARY.search(result.stderr)
    if missing is not None:
        raise SystemLibraryMissingError(_missing_text(name, missing[1]), library=missing[1])
    raise EnvironmentBrokenError(
        f"{name} cannot import {', '.join(modules)} ({_how_it_ended(result.returncode)}):\n"
        + "\n".join(result.stderr.splitlines()[-_SHOWN_LINES:])
    )


def _missing_text(name: str, library: str) -> str:
    package = _PACKAGES.get(library)
    remedy = (
        f"run `sudo apt install {package}`"
        if package
        else f"find its package with `apt-file search {library}` and install it"
    )
    return f"{name} needs the system library {library}, which this machine lacks; {remedy}"


def _how_it_ended(return_code: int) -> str:
    if return_code >= 0:
        return f"exit code {return_code}"
    return f"ended by {signal.Signals(-return_code).name}"
