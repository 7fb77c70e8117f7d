"""The part of YAML that plans use, read into JSON values with the position of each.

One document of mappings, lists and scalars. Aliases, anchors, tags, directives and repeated keys
are refused: they make a short file long, or one text mean two things. Size, depth and count are
checked while the text is read, before anything is built from it.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from coordinator.plan.positions import START, FieldPath, Position, Positions
from coordinator.plan.problems import Problem, shown
from coordinator.plan.scalars import resolve_plain
from stagewire.limits import PLAN_BYTES, PLAN_DEPTH, PLAN_NODES

Json: TypeAlias = Any
"""Value of any field as it stands in the file, hence Any."""

_NOT_YAML = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# libyaml's parser is an order of magnitude faster; PyYAML built without it has only its own.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """What a plan file says, before its fields are checked."""

    value: Json
    positions: Positions
    problems: tuple[Problem, ...]
    unreadable: frozenset[FieldPath]
    """Fields whose value stands for another one, so that it means nothing here."""
    is_complete: bool
    """Whether the text was read to its end; otherwise `value` is worth nothing."""


def read_document(content: bytes) -> Document:
    """Reads the bytes of a plan file; never fails, but lists problems."""
    builder = _Builder()
    is_complete = False
    text = ""
    try:
        text = _decoded(content)
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
        if not builder.has_root:
            _stop("is empty", "write a plan", START)
        is_complete = True
    except _Unreadable as stop:
        builder.problems.append(stop.problem)
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(error, text))
    return Document(
        builder.root,
        Positions(builder.values, builder.keys),
        tuple(builder.problems),
        frozenset(builder.unreadable),
        is_complete,
    )


class _Unreadable(Exception):  # noqa: N818 - control flow within this module
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


def _stop(what: str, remedy: str, position: Position, path: FieldPath = ()) -> NoReturn:
    raise _Unreadable(Problem(path, what, remedy, position=position))


def _decoded(content: bytes) -> str:
    if len(content) > PLAN_BYTES:
        _stop(f"has more than {PLAN_BYTES} bytes", "divide it into several plans", START)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        position = _position_at(content[: error.start].decode("utf-8"), error.start)
        _stop("is not UTF-8 text", "save it as UTF-8", position)
    if match := _NOT_YAML.search(text):
        position = _position_at(text, match.start())
        _stop(f"holds the character {match[0]!r}, which YAML forbids", "remove it", position)
    return text


def _position_at(text: str, offset: int) -> Position:
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _position_of(mark: Any) -> Position:  # Any: libyaml's marks and PyYAML's have no common type
    return Position(mark.line + 1, mark.column + 1) if mark else START


def _syntax_problem(error: yaml.YAMLError, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = _position_of(mark)
    lines = _LINE_BREAK.split(text)
    if position.line > len(lines):
        # The parser ends a last line that lacks its end, and points behind that.
        position = Position(len(lines), len(lines[-1]) + 1)
    what = getattr(error, "problem", None) or "cannot be read"
    return Problem(
        (), f"is not YAML here: {what}", "check indentation, quotes and brackets", position=position
    )


@dataclass(slots=True)
class _Container:
    """A mapping or list that is being read."""

    path: FieldPath
    value: dict[str, Json] | list[Json]
    key: str | None = None
    """Key whose value comes next; None where a key comes next, and in lists."""
    is_repeated: bool = False
    """Whether that key was there before, so that its value is dropped."""


@dataclass(slots=True)
class _Builder:
    """Builds values from events without recursion, so that depth costs nothing."""

    root: Json = None
    has_root: bool = False
    values: dict[FieldPath, Position] = field(default_factory=dict)
    keys: dict[FieldPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unreadable: set[FieldPath] = field(default_factory=set)
    _open: list[_Container] = field(default_factory=list)
    _node_count: int = 0

    def take(self, event: Event) -> None:
        """Takes one event of the parser."""
        position = _position_of(event.start_mark)
        if isinstance(event, DocumentStartEvent):
            self._begin_document(event, position)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, NodeEvent):
            self._count(position)
            if self._expects_key:
                self._take_key(event, position)
            else:
                self._take_value(event, position)

    @property
    def _expects_key(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].value, dict)
            and self._open[-1].key is None
        )

    def _begin_document(self, event: DocumentStartEvent, position: Position) -> None:
        if self.has_root:
            _stop("holds a second document", "keep one plan in a file", position)
        if event.version or event.tags:
            _stop("has a YAML directive", "remove the line that begins with %", position)

    def _count(self, position: Position) -> None:
        self._node_count += 1
        if self._node_count > PLAN_NODES:
            _stop(f"has more than {PLAN_NODES} values", "divide it into several plans", position)

    def _take_key(self, event: NodeEvent, position: Position) -> None:
        container = self._open[-1]
        if not isinstance(event, ScalarEvent):
            _stop("has a key that is not a word", "write a name", position, container.path)
        # Always text as written: YAML 1.1 would make a boolean of a stage called `on`.
        key = event.value
        path = (*container.path, key)
        self._check_plain(event, path, position)
        container.key = key
        container.is_repeated = key in container.value
        if container.is_repeated:
            first = self.keys[path]
            self.problems.append(
                Problem(path, f"stands twice, first at {first}", "remove one", position=position)
            )
        else:
            self.keys[path] = position

    def _take_value(self, event: NodeEvent, position: Position) -> None:
        path, is_kept = self._next_path()
        if is_kept:
            self.values[path] = position
        is_plain = self._check_plain(event, path, position)
        value: Json = None
        if isinstance(event, ScalarEvent):
            value = self._scalar(event, path, position) if is_plain else event.value
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            value = {} if isinstance(event, MappingStartEvent) else []
        self._place(value, is_kept)
        if isinstance(value, dict | list):
            if len(self._open) == PLAN_DEPTH:
                _stop(f"is nested deeper than {PLAN_DEPTH} levels", "flatten it", position, path)
            self._open.append(_Container(path, value))

    def _next_path(self) -> tuple[FieldPath, bool]:
        if not self._open:
            return (), True
        container = self._open[-1]
        if isinstance(container.value, list):
            return (*container.path, len(container.value)), True
        return (*container.path, container.key or ""), not container.is_repeated

    def _place(self, value: Json, is_kept: bool) -> None:
        if not self._open:
            self.root, self.has_root = value, True
            return
        container = self._open[-1]
        if isinstance(container.value, list):
            container.value.append(value)
        elif container.key is not None:
            if is_kept:
                container.value[container.key] = value
            container.key = None

    def _check_plain(self, event: NodeEvent, path: FieldPath, position: Position) -> bool:
        """Lists an alias, anchor or tag; returns whether there is none."""
        what = ""
        if isinstance(event, AliasEvent):
            what = f"is an alias (*{shown(event.anchor)[1:-1]})"
        elif event.anchor is not None:
            what = f"has an anchor (&{shown(event.anchor)[1:-1]})"
        elif getattr(event, "tag", None) is not None:
            what = f"has a tag ({shown(getattr(event, 'tag', ''))[1:-1]})"
        if what:
            self._add_unreadable(path, what, "write the value itself", position)
        return not what

    def _add_unreadable(self, path: FieldPath, what: str, remedy: str, position: Position) -> None:
        self.problems.append(Problem(path, what, remedy, position=position))
        self.unreadable.add(path)

    def _scalar(self, event: ScalarEvent, path: FieldPath, position: Position) -> Json:
        is_plain = event.implicit[0]
        if not is_plain:
            return event.value
        try:
            return resolve_plain(event.value)
        except ValueError as error:
            self._add_unreadable(path, str(error), "put it in quotes if it is text", position)
            return event.value
