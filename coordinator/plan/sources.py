"""Where the files of an artifact come from, and which names they may have."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.facts.paths import problem_of_relative_path

_SHA256 = r"[0-9a-f]{64}"
_PACKAGE = re.compile(
    rf"pypi:([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([0-9A-Za-z][0-9A-Za-z.!+_-]*)"
    rf"@sha256:({_SHA256})#(.+)"
)

SHA256_PATTERN = f"^{_SHA256}$"
SOURCE_PATTERN = rf"^(file:.+|pypi:[^=]+==[^@]+@sha256:{_SHA256}#.+)$"


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file below the folder of the plan."""

    path: str

    def __str__(self) -> str:
        return f"file:{self.path}"


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A file inside one wheel of a Python package index."""

    name: str
    version: str
    wheel_sha256: str
    member: str

    def __str__(self) -> str:
        return f"pypi:{self.name}=={self.version}@sha256:{self.wheel_sha256}#{self.member}"


Source: TypeAlias = FileSource | PackageSource


def parse_source(text: str) -> Source:
    """Returns the source that a plan names.

    Raises:
        ValueError: the text has neither form, or its path leaves its folder.
    """
    if text.startswith("file:"):
        return FileSource(check_relative_path(text.removeprefix("file:")))
    match = _PACKAGE.fullmatch(text)
    if match is None:
        raise ValueError(
            "is not a source; write file:PATH or pypi:NAME==VERSION@sha256:WHEEL_SHA256#MEMBER"
        )
    return PackageSource(match[1], match[2], match[3], check_relative_path(match[4]))


def check_relative_path(path: str) -> str:
    """Returns a path with `/` that stays below its folder on every operating system, unchanged.

    Raises:
        ValueError: it may leave its folder, or be read in two ways.
    """
    problem = problem_of_relative_path(path)
    if problem:
        raise ValueError(problem)
    return path
