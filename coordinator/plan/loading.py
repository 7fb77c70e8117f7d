"""Reading a plan file; the one module of this package that touches a disk."""

import errno
import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from coordinator.plan.documents import read_document
from coordinator.plan.examples import check_examples
from coordinator.plan.graph import check_pipelines
from coordinator.plan.positions import FieldPath, Positions
from coordinator.plan.problems import Problem, plan_invalid
from coordinator.plan.references import check_references
from coordinator.plan.schema import Plan
from coordinator.plan.validation import validate
from stagewire.errors import PlanInvalidError
from stagewire.limits import PLAN_BYTES


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan that breaks no rule, and the file it came from."""

    plan: Plan
    path: Path
    digest: str
    """Sha256 of the file's bytes, in hexadecimal."""
    positions: Positions
    """Where each field stands, for a refusal that comes later."""

    @property
    def folder(self) -> Path:
        """Folder that relative paths of artifacts start from."""
        return self.path.absolute().parent

    def where(self, field_path: FieldPath) -> str:
        """Returns `file:line:column` of a field, or of the entry that would hold it."""
        return f"{self.path}:{self.positions.of_key(field_path)}"


def load_plan(path: Path) -> LoadedPlan:
    """Reads a plan file. Opens nothing else: whatever the plan names is left alone.

    Raises:
        PlanInvalidError: the file cannot be read or breaks rules; each has a line in the message.
    """
    return parse_plan(_read(path), path)


def parse_plan(content: bytes, path: Path) -> LoadedPlan:
    """Reads the bytes of a plan file; `path` names it in messages.

    Raises:
        PlanInvalidError: it breaks rules; each has its line in the message.
    """
    document = read_document(content)
    problems = list(document.problems)
    plan = None
    if document.is_complete:
        plan, parts, found = validate(document)
        found += check_references(parts)
        found += check_pipelines(parts)
        found += check_examples(parts)
        problems += [item for item in found if not _follows(item.path, document.unreadable)]
    if problems or plan is None:
        raise plan_invalid(problems, str(path), document.positions)
    return LoadedPlan(plan, path, hashlib.sha256(content).hexdigest(), document.positions)


def _follows(path: FieldPath, unreadable: Collection[FieldPath]) -> bool:
    """Whether a problem may only follow from a field that could not be read."""
    return any(path[: len(outer)] == outer or outer[: len(path)] == path for outer in unreadable)


def _read(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK, a named pipe would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not path.is_file():
                raise OSError(errno.EINVAL, "not a regular file")  # noqa: TRY301
            # One byte more than allowed is enough to see that there is too much.
            return file.read(PLAN_BYTES + 1)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else "not a path"
        problem = Problem((), f"cannot be read: {what}", "name a file that holds a plan")
        raise plan_invalid([problem], str(path), Positions({}, {})) from error


__all__ = ["LoadedPlan", "PlanInvalidError", "load_plan", "parse_plan"]
