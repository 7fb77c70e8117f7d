"""Interpreters: which one an environment is built with, and what one is."""

import json
import platform
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator.reach.key import InterpreterIdentity
from coordinator.reach.tool import Phase, UvTool, build_failure
from coordinator.reach.variables import worker_environment
from stagewire.errors import EnvironmentBrokenError

PROBE_SECONDS: Final = 60.0
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


def choose_interpreter(requires_python: str, tool: UvTool, folder: Path) -> Interpreter:
    """Returns the coordinator's own base interpreter if it suits, else one that uv finds here.

    Raises:
        EnvironmentBuildError: no interpreter on this machine suits; none is downloaded.
    """
    own = _own_interpreter()
    if not requires_python or _is_allowed(requires_python, own.identity.version):
        return own
    arguments = ["python", "find", "--no-project", "--system", "--no-python-downloads"]
    result = tool.run(Phase.CHECK, [*arguments, requires_python], is_offline=True, folder=folder)
    if not result.is_success:
        raise build_failure(f"finding a Python {requires_python} for {folder.name}", result)
    path = Path(result.output.strip())
    return Interpreter(path, _identity(ask_interpreter(path, _PROBE)))


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
        [path, "-I", "-c", script, *arguments],
        env=worker_environment(1),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_seconds,
        check=False,
    )


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
