"""Outputs of `coordinator run`: written to files, or printed as they come."""

import errno
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import typer

from coordinator.cli.screen import Screen
from stagewire.bits import STORAGE, shape_of
from stagewire.client import Output, write_wav
from stagewire.errors import (
    DiskFullError,
    FieldInvalidError,
    PathForbiddenError,
    TensorMismatchError,
)
from stagewire.tensor import Value, data_type_of

SUFFIXES: Final = (".wav", ".npy", ".txt")


def check_wav_target(path: Path) -> None:
    """Checks that a file can be written as WAV.

    Raises:
        PathForbiddenError: it cannot, or its name says that it is something else.
    """
    if path.suffix.lower() != ".wav":
        raise PathForbiddenError(f"the reply is a WAV file; name one that ends in .wav, not {path}")
    check_target(path)


def check_target(path: Path) -> None:
    """Checks that a file can be written before anything is computed for it.

    Raises:
        PathForbiddenError: it cannot.
    """
    try:
        existed = path.exists()
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise PathForbiddenError(
            f"{path} cannot be written: {error.strerror}; name another file"
        ) from None


class Outputs:
    """Takes the outputs of one request."""

    def __init__(
        self, screen: Screen, targets: Mapping[str, Path], rate: int | None, *, is_quiet: bool
    ) -> None:
        self._screen = screen
        self._targets = targets
        self._rate = rate
        self._is_quiet = is_quiet
        self._items: dict[str, list[Value]] = {}
        self._open_port = ""

    def check(self, known: Iterable[str]) -> None:
        """Checks the files and the names of the outputs before anything runs.

        Raises:
            BadParameter: a file has a name of no known kind, or a rate is missing.
            FieldInvalidError: the pipeline has no such output.
            PathForbiddenError: a file cannot be written.
        """
        names = list(known)
        for port, path in self._targets.items():
            if path.suffix.lower() not in SUFFIXES:
                raise typer.BadParameter(
                    f"{path.name} is none of {', '.join(SUFFIXES)}", param_hint="--output"
                )
            if path.suffix.lower() == ".wav" and self._rate is None:
                raise typer.BadParameter("a WAV file needs --rate", param_hint="--output")
            if port not in names:
                raise FieldInvalidError(
                    f"the pipeline has no output {port!r}; it has {', '.join(names)}"
                )
            check_target(path)

    def take(self, output: Output) -> None:
        """Takes one item; a text that goes to no file is printed at once."""
        self._items.setdefault(output.port, []).append(output.value)
        if self._is_quiet or output.port in self._targets:
            return
        if isinstance(output.value, str):
            if self._open_port != output.port:
                self._screen.end_line()
                self._screen.write(f"{output.port}: ")
                self._open_port = output.port
            self._screen.write(output.value)
        else:
            self._open_port = ""
            self._screen.line(f"{output.port}: {describe(output.value)}")

    def finish(self) -> dict[str, object]:
        """Writes the files; returns what each output gave, for `--json`.

        Raises:
            StageError: a file cannot be written, or not in its form.
        """
        self._screen.end_line()
        found: dict[str, object] = {}
        for port, items in self._items.items():
            path = self._targets.get(port)
            if path is not None:
                write(path, items, self._rate)
                found[port] = {"file": str(path), "items": len(items)}
                if not self._is_quiet:
                    self._screen.line(f"{port}: {len(items)} items in {path}")
            elif all(isinstance(item, str) for item in items):
                found[port] = {"text": "".join(map(str, items)), "items": len(items)}
            else:
                found[port] = {"shapes": [describe(item) for item in items], "items": len(items)}
        return found


def describe(value: Value) -> str:
    """Returns what a value is, for people."""
    if isinstance(value, np.ndarray):
        kind, shape = data_type_of(value).spelling, shape_of(value)
        return f"{kind}{list(shape)}" if shape else f"{kind} {value}"
    return f"{len(value)} bytes" if isinstance(value, bytes) else value


def write(path: Path, items: list[Value], rate: int | None) -> None:
    """Writes the items of one output into a file, joined, in the form that its name says.

    Raises:
        TensorMismatchError: the items do not have that form.
        DiskFullError: there is no room for the file.
        PathForbiddenError: it cannot be written.
    """
    # Beside it first: a full disk leaves no half of a file under the name.
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write(scratch, path, items, rate)
        scratch.replace(path)
    except OSError as error:
        # None: numpy says without a number that it could not write all.
        is_full = error.errno in (None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        kind = DiskFullError if is_full else PathForbiddenError
        raise kind(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        scratch.unlink(missing_ok=True)


def _write(scratch: Path, path: Path, items: list[Value], rate: int | None) -> None:
    suffix = path.suffix.lower()
    if suffix == ".txt":
        if not all(isinstance(item, str) for item in items):
            raise TensorMismatchError(f"{path.name}: the output is not text; name a .npy file")
        scratch.write_text("".join(map(str, items)), encoding="utf-8")
        return
    joined = _joined(items, path.name)
    if suffix == ".wav" and rate is not None:
        write_wav(scratch, joined, rate)
        return
    with scratch.open("wb") as file:
        np.save(file, joined, allow_pickle=False)


def _joined(items: list[Value], name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.generic]]":
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if len(arrays) < len(items):
        raise TensorMismatchError(f"{name}: the output is text; name a .txt file")
    for array in arrays:
        if (data_type := data_type_of(array)) in STORAGE:
            raise TensorMismatchError(
                f"{name}: numpy has no {data_type.spelling}; use the client of the sdk"
            )
    try:
        return np.concatenate([np.atleast_1d(array) for array in arrays])
    except ValueError:
        raise TensorMismatchError(
            f"{name}: the items have shapes that cannot be joined; use the client of the sdk"
        ) from None
