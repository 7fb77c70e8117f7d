"""Running uv: without a shell, without foreign settings, one line of progress at a time."""

import collections
import enum
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import uv

from coordinator.artifacts.diagnosis import diagnosis
from coordinator.artifacts.leash_linux import end_leashed, leashed
from coordinator.artifacts.trouble import ANOTHER_CACHE, FULL_ERRNOS, limit_reached
from stagewire.errors import DiskFullError, EnvironmentBuildError

KEPT_LINES: Final = 20
"""Last lines of a tool that an error shows."""
_PASSED_ON: Final = frozenset(
    {
        "ALL_PROXY",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "NO_PROXY",
        "PATH",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "USER",
        "UV_CACHE_DIR",
        "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL",
        "UV_HTTP_RETRIES",
        "UV_HTTP_TIMEOUT",
        "UV_INDEX",
        "UV_INDEX_URL",
        "UV_NATIVE_TLS",
        "UV_OFFLINE",
        "UV_PYTHON_INSTALL_DIR",
        "UV_SYSTEM_CERTS",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "all_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    }
)
_PROGRESS: Final = ("Downloading", "Downloaded", "Prepared", "Installed", "Built")
"""Lines of uv that say how far it is; the rest is shown only with a failure."""
_SOURCE_DATE: Final = "1580601600"
"""Any fixed date makes two builds of the same sources the same wheel; this is hatchling's own."""


class Phase(enum.StrEnum):
    """What the making of an environment is busy with."""

    WAIT = "wait"
    """Another coordinator builds the same environment."""
    WHEELS = "wheels"
    INSTALL = "install"
    CHECK = "check"


Report: TypeAlias = Callable[[Phase, str], None]
"""Called with a phase and a line about it, from the thread that builds."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How one run of a tool ended."""

    exit_code: int
    output: str
    """Standard output, when it was asked for."""
    last_lines: tuple[str, ...]

    @property
    def is_success(self) -> bool:
        """Whether the tool did what it was asked."""
        return self.exit_code == 0

    @property
    def is_cache_short(self) -> bool:
        """Whether it failed, as a run without network does when the cache lacks something.

        uv names the network only sometimes; where it has never seen a package, it finds no version.
        """
        lines = [line.lower() for line in self.last_lines]
        return not self.is_success and any(
            "no solution found" in line or ("network" in line and "disabled" in line)
            for line in lines
        )


class UvTool:
    """Runs uv for one builder. Safe to use from several threads."""

    def __init__(self, report: Report, executable: Path | None = None) -> None:
        self._report = report
        self._executable = executable
        self._running: set[subprocess.Popen[str]] = set()
        self._guard = threading.Lock()
        self._is_stopped = False

    def run(
        self, phase: Phase, arguments: Sequence[str], *, is_offline: bool, folder: Path
    ) -> ToolResult:
        """Runs uv in a folder to its end and reports how far it is.

        Raises:
            DiskFullError: the disk is full.
            EnvironmentBuildError: uv cannot be run, or was stopped.
        """
        command = [self._find(), *arguments, "--no-config", "--no-progress", "--color", "never"]
        if is_offline:
            command.append("--offline")
        process = self._start(command, folder)
        lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        try:
            output = self._follow(phase, process, lines)
        finally:
            # Does nothing to a process that ended by itself.
            end_leashed(process)
            with self._guard:
                self._running.discard(process)
        exit_code = process.returncode
        if self._is_stopped:
            raise EnvironmentBuildError("the build was stopped")
        if exit_code != 0:
            _require_space(lines)
        return ToolResult(exit_code, output, tuple(lines))

    def run_with_cache_first(
        self, phase: Phase, arguments: Sequence[str], *, is_download_allowed: bool, folder: Path
    ) -> ToolResult:
        """Runs uv with what its cache holds, and with the network only if that was not enough."""
        result = self.run(phase, arguments, is_offline=True, folder=folder)
        if result.is_cache_short and is_download_allowed and not os.environ.get("UV_OFFLINE"):
            return self.run(phase, arguments, is_offline=False, folder=folder)
        return result

    def stop(self) -> None:
        """Ends what runs and lets nothing start any more. Callable from any thread."""
        with self._guard:
            self._is_stopped = True
            for process in self._running:
                end_leashed(process)

    def _follow(
        self, phase: Phase, process: subprocess.Popen[str], lines: collections.deque[str]
    ) -> str:
        """Reports what uv says until it ends, and returns its standard output."""
        output: list[str] = []
        with process:
            reader = threading.Thread(target=lambda: output.extend(process.stdout or ()))
            reader.start()
            try:
                for line in process.stderr or ():
                    lines.append(line.rstrip())
                    if lines[-1].strip().startswith(_PROGRESS):
                        self._report(phase, lines[-1].strip())
            except BaseException:
                end_leashed(process)
                raise
            finally:
                reader.join()
        return "".join(output)

    def _find(self) -> str:
        if self._executable is not None:
            return str(self._executable)
        try:
            return uv.find_uv_bin()
        except FileNotFoundError as error:
            raise EnvironmentBuildError(
                "uv is not installed beside this coordinator; run `uv sync`"
            ) from error

    def _start(self, command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
        with self._guard:
            if self._is_stopped:
                raise EnvironmentBuildError("the build was stopped")
            try:
                process = subprocess.Popen(
                    leashed(command),
                    cwd=folder,
                    env=tool_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                    # Ctrl-C in the terminal is for the coordinator, which then ends uv.
                    start_new_session=True,
                )
            except OSError as error:
                if (limit := limit_reached(error)) is not None:
                    raise limit from error
                raise EnvironmentBuildError(
                    f"uv cannot be run: {error.strerror}; run `uv sync --reinstall-package uv`"
                ) from error
            self._running.add(process)
        return process


def _require_space(lines: Iterable[str]) -> None:
    for line in lines:
        if any(os.strerror(number) in line for number in FULL_ERRNOS):
            raise DiskFullError(
                f"the disk is full: {line.strip().removeprefix('cause: ')}; free space there, or"
                f" {ANOTHER_CACHE}"
            )


def tool_environment() -> dict[str, str]:
    """Returns the variables that tools see: no activated environment, no Python settings."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return passed_on | {"SOURCE_DATE_EPOCH": _SOURCE_DATE, "UV_NO_PROGRESS": "1"}


def build_failure(doing: str, result: ToolResult) -> EnvironmentBuildError:
    """Returns the failure that says what to do, where that is known, and shows the last lines."""
    known = diagnosis(result.last_lines)
    if not known and (result.exit_code < 0 or not result.last_lines):
        known = "uv ended without a word; run `uv sync --reinstall-package uv`"
    lines = "\n".join(result.last_lines)
    known = f" {known}" if known else ""
    return EnvironmentBuildError(
        f"{doing} failed (uv ended with {result.exit_code}):{known}\n{lines}",
        exit_code=result.exit_code,
    )
