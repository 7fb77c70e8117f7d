"""Code and commands in the pages of this repository."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"`([\w./-]+)`:\n\n\Z")
_INLINE = re.compile(r"`(?:uv run )?(coordinator(?: [^`]+)?|\./run(?: [^`]+)?)`")
_TASKS = ("test", "uv")
"""Words after `./run` that are no command of the coordinator."""


@dataclass(frozen=True)
class Snippet:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    file_name: str
    """Name before the block, such as `tests/test_it.py`; empty when there is none."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets(page: Path, *languages: str) -> list[Snippet]:
    """Returns the blocks of a page in these languages."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        name = _FILE_NAME.search(text, 0, match.start())
        line = text.count("\n", 0, match.start()) + 2
        found.append(Snippet(page, line, match[1], match[2], name[1] if name else ""))
    return [snippet for snippet in found if snippet.language in languages]


@dataclass(frozen=True)
class Command:
    """One command of the coordinator, without the word `coordinator`."""

    where: str
    words: tuple[str, ...]
    is_mention: bool
    """Whether it stands in a sentence, where required options may be left out."""


def commands(page: Path) -> Iterator[Command]:
    """Iterates over the commands of the coordinator that a page shows."""
    for snippet in snippets(page, "sh", ""):
        for number, line in enumerate(snippet.text.splitlines(), start=snippet.line):
            words = _words(line.removeprefix("$ "))
            if words is not None:
                where = f"{page.relative_to(ROOT)}:{number}"
                yield Command(where, words, is_mention=False)
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for match in _INLINE.finditer(prose):
        words = _words(" ".join(match[1].split()))
        if words is not None:
            yield Command(f"{page.relative_to(ROOT)}: {match[0]}", words, is_mention=True)


def _words(line: str) -> tuple[str, ...] | None:
    """Returns the words after the program; None when the line is no command of it."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    if words[:2] == ["uv", "run"]:
        words = words[2:]
    if not words or words[0] not in ("coordinator", "./run"):
        return None
    if words[0] == "./run" and (len(words) == 1 or words[1] in _TASKS):
        return None
    return tuple(words[1:])
