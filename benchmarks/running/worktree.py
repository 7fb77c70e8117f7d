"""Checkouts of other revisions, each with an environment of its own and this bench."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from benchmarks.judging.proofs import SIDES, NotProvenError
from benchmarks.running.provenance import ROOT, git
from benchmarks.running.rounds import RunStoppedError, Say

_PRODUCT: Final = ("coordinator", "sdk", "workers", "plans", "pyproject.toml", "uv.lock")
"""What a revision is compared for; other changes cannot change a figure."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """One revision on the disk."""

    folder: Path
    python: Path
    commit: str


def checked_out(
    revisions: Sequence[str], folder: Path, say: Say, stack: ExitStack
) -> Mapping[str, Checkout]:
    """Returns a checkout for each side; they are removed with the stack.

    Raises:
        NotProvenError: a revision is unknown, or both have the same product.
    """
    commits = [git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") for name in revisions]
    for name, commit in zip(revisions, commits, strict=True):
        if not commit:
            raise NotProvenError(f"{name!r} is no revision of this repository")
    if not git("diff", "--name-only", *commits, "--", *_PRODUCT):
        raise NotProvenError(
            f"{revisions[0]} and {revisions[1]} have the same product; there is nothing to compare"
        )
    found = {}
    for side, commit in zip(SIDES, commits, strict=True):
        say(f"checking out {commit[:12]} for arm {side}")
        found[side] = _check_out(commit, (folder / f"checkout-{side}").resolve(), stack)
    return found


def _check_out(commit: str, folder: Path, stack: ExitStack) -> Checkout:
    _run(["git", "worktree", "add", "--detach", str(folder), commit], ROOT)
    stack.callback(_run, ["git", "worktree", "remove", "--force", str(folder)], ROOT)
    # Both sides are measured by the same bench: the one that runs now.
    shutil.rmtree(folder / "benchmarks", ignore_errors=True)
    shutil.copytree(
        ROOT / "benchmarks",
        folder / "benchmarks",
        ignore=shutil.ignore_patterns("__pycache__", "results"),
    )
    environment = folder / ".venv"
    _run(
        [find_uv_bin(), "sync", "--quiet", "--locked", "--project", str(folder)],
        folder,
        UV_PROJECT_ENVIRONMENT=str(environment),
    )
    return Checkout(folder, environment / "bin" / "python", commit)


def _run(command: Sequence[str], folder: Path, **variables: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    result = subprocess.run(
        command, cwd=folder, env=inherited | variables, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise RunStoppedError(f"{' '.join(command[:3])} failed: {result.stderr.strip()[-500:]}")
