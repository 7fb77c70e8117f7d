"""Interpreters: which one an environment is built with, and what one is."""

import json
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator.artifacts.leash_linux import leashed
from coordinator.artifacts.trouble import limit_reached
from coordinator.reach.key import InterpreterIdentity
from coordinator.reach.tool import Phase, UvTool, build_failure
from coordinator.reach.variables import worker_environment
from stagewire.errors import EnvironmentBrokenError, EnvironmentBuildError

PROBE_SECONDS: Final = 60.0
PYTHON_BYTES: Final = 40 << 20
"""What the download of an interpreter takes at most: uv does not say it before."""
PYTHON_LICENCE: Final = "PSF-2.0"
_NEWEST_MINOR: Final = 14
_OLDEST_MINOR: Final = 10
_LATE_PATCH: Final = 99
_PROBE: Final = """
import json, platform, sys, sysconfig
print(json.dumps({
    "version": platform.python_version(),
    "abi": sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag,
    "platform": sysconfig.get_platform(),
}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter outside of any environment."""

    path: Path
    identity: InterpreterIdentity


def find_interpreter(requires_python: str, tool: UvTool, folder: Path) -> Interpreter | None:
    """Returns the coordinator's own base interpreter if it suits, else one that uv finds here."""
    own = _own_interpreter()
    if not requires_python or _is_allowed(requires_python, own.identity.version):
        return own
    arguments = ["python", "find", "--no-project", "--system", "--no-python-downloads"]
    # One by one: a broken interpreter in PATH, such as a shim of a version that is not chosen, ends
    # the search of uv for every version that it might be.
    for version in _versions(requires_python):
        found = _ask_uv([*arguments, version], requires_python, tool, folder)
        if found is not None:
            return found
    return None


def fetchable_python(requires_python: str) -> str | None:
    """Returns the version, such as "3.13", that `fetch_interpreter` would get; None for none."""
    return next(iter(_versions(requires_python)), None)


def fetch_interpreter(requires_python: str, tool: UvTool, folder: Path) -> Interpreter:
    """Downloads an interpreter into the folder of uv's own interpreters.

    Raises:
        EnvironmentBuildError: it cannot be fetched.
    """
    version = fetchable_python(requires_python)
    if version is not None:
        arguments = ["python", "install", "--no-bin", version]
        result = tool.run(Phase.INSTALL, arguments, is_offline=False, folder=folder)
        if not result.is_success:
            failure = build_failure(f"getting Python {version} for {folder.name}", result)
            raise EnvironmentBuildError(
                f"{failure.message}\n{python_remedy(requires_python)}", version=version
            )
        arguments = ["python", "find", "--no-project", "--managed-python", version]
        found = _ask_uv(arguments, requires_python, tool, folder)
        if found is not None:
            return found
    raise EnvironmentBuildError(f"{folder.name}: {python_remedy(requires_python)}")


def python_remedy(requires_python: str) -> str:
    """Returns which Python versions would do, and how to get one."""
    version = fetchable_python(requires_python)
    how = f"get one with `./run uv python install {version}`" if version else "install one"
    return f"Python {requires_python} is needed and none works here; {how}"


def ask_interpreter(path: Path, script: str, *arguments: str) -> Any:
    """Runs a script that prints JSON in an interpreter and returns the value (JSON, hence Any).

    Raises:
        EnvironmentBrokenError: it is no working interpreter.
    """
    try:
        result = run_script(path, script, *arguments, timeout_seconds=PROBE_SECONDS)
        result.check_returncode()
        return json.loads(result.stdout)
    except OSError as error:
        if (limit := limit_reached(error)) is not None:
            raise limit from error
        raise EnvironmentBrokenError(
            f"interpreter {path.name} cannot be run ({error.strerror}); correct its path"
        ) from error
    except (subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentBrokenError(
            f"{path.name} does not answer like an interpreter; correct its path"
        ) from error


def run_script(
    path: Path, script: str, *arguments: str, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Runs a script as a worker would run, apart from the user's own modules and variables.

    Raises:
        OSError: the interpreter cannot be run.
        subprocess.TimeoutExpired: it takes too long.
    """
    return subprocess.run(
        leashed([str(path), "-I", "-c", script, *arguments]),
        env=worker_environment(1),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_seconds,
        check=False,
        start_new_session=True,
    )


def _versions(requires_python: str) -> Iterator[str]:
    """Iterates over the minor versions that suit, newest first."""
    for minor in range(_NEWEST_MINOR, _OLDEST_MINOR - 1, -1):
        if _is_allowed(requires_python, f"3.{minor}.{_LATE_PATCH}"):
            yield f"3.{minor}"


def _ask_uv(
    arguments: Sequence[str], requires_python: str, tool: UvTool, folder: Path
) -> Interpreter | None:
    result = tool.run(Phase.CHECK, arguments, is_offline=True, folder=folder)
    if not result.is_success:
        return None
    path = Path(result.output.strip())
    try:
        identity = _identity(ask_interpreter(path, _PROBE))
    except EnvironmentBrokenError:
        return None
    is_allowed = _is_allowed(requires_python, identity.version)
    return Interpreter(path, identity) if is_allowed else None


def _own_interpreter() -> Interpreter:
    # The interpreter that a virtual environment was made from: an environment that is built on
    # another one would break when that one is removed.
    path = Path(getattr(sys, "_base_executable", "") or sys.executable)
    abi = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag
    identity = InterpreterIdentity(platform.python_version(), abi, sysconfig.get_platform())
    return Interpreter(path, identity)


def _identity(answer: Any) -> InterpreterIdentity:
    return InterpreterIdentity(answer["version"], answer["abi"], answer["platform"])


def _is_allowed(requires_python: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(requires_python).contains(version, prereleases=True)
