"""What every executor needs before it loads: checks of an order, and whether its library is there.

All checks of ports, options and files name the stage, the field and what to write instead.
"""

import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stagewire.errors import (
    FieldInvalidError,
    FormatUnsupportedError,
    LoadFailedError,
    TensorMismatchError,
)
from stagewire.ports import Port
from stagewire.tensor import DataType
from stagewire.worker.executor import Capability, StageOrder

_LIBRARY_CHARACTERS: Final = 300
_FOLDERS: Final = re.compile(r"""(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[^\s\\/:*?"'<>|(),;]+[\\/])+""")
"""Everything of an absolute path but its last part."""


@dataclass(frozen=True, slots=True)
class PortRule:
    """What an executor asks of one port of its stages."""

    name: str
    data_type: DataType
    ranks: tuple[int, ...] = (0,)
    """Numbers of dimensions that it can work with."""
    is_stream: bool | None = None
    """Whether the port must be a stream; None where both will do."""
    is_required: bool = True


def check_ports(order: StageOrder, inputs: Sequence[PortRule], outputs: Sequence[PortRule]) -> None:
    """Checks that a stage declares the ports of its executor, and no others.

    Raises:
        TensorMismatchError: a port is missing, unknown, or of another type.
    """
    _check_side(order, "input", order.inputs, inputs)
    _check_side(order, "output", order.outputs, outputs)


def _check_side(
    order: StageOrder, side: str, ports: Sequence[Port], rules: Sequence[PortRule]
) -> None:
    declared = {port.name: port for port in ports}
    known = {rule.name for rule in rules}
    what = order.function or order.executor
    for name in declared:
        if name not in known:
            raise TensorMismatchError(
                f"stage {order.stage_id}: {what} has no {side} {name!r};"
                f" it has {', '.join(sorted(known)) or 'none'}",
                stage=order.stage_id,
                port=name,
            )
    for rule in rules:
        port = declared.get(rule.name)
        if port is None:
            if rule.is_required:
                raise TensorMismatchError(
                    f"stage {order.stage_id}: {what} needs the {side} {rule.name!r}"
                    f" of type {rule.data_type.spelling}; add it to the stage",
                    stage=order.stage_id,
                    port=rule.name,
                )
            continue
        problem = _port_problem(port, rule)
        if problem:
            raise TensorMismatchError(
                f"stage {order.stage_id}: {side} {rule.name!r} of {what} {problem}",
                stage=order.stage_id,
                port=rule.name,
            )


def _port_problem(port: Port, rule: PortRule) -> str:
    if port.data_type is not rule.data_type:
        return f"is {port.data_type.spelling}; it must be {rule.data_type.spelling}"
    if len(port.dimensions) not in rule.ranks:
        wanted = " or ".join(str(rank) for rank in rule.ranks)
        return f"has {len(port.dimensions)} dimensions; it must have {wanted}"
    if rule.is_stream is not None and port.is_stream is not rule.is_stream:
        return "must be a stream" if rule.is_stream else "must not be a stream"
    return ""


def find_port(ports: Sequence[Port], name: str) -> Port | None:
    """Returns the port of that name, or None."""
    return next((port for port in ports if port.name == name), None)


def check_format(order: StageOrder, formats: Sequence[str]) -> None:
    """Checks that the artifact has one of an executor's formats.

    Raises:
        FormatUnsupportedError: it has none of them.
    """
    if order.artifact_format not in formats:
        raise FormatUnsupportedError(
            f"stage {order.stage_id}: {order.executor} does not run artifacts of format"
            f" {order.artifact_format or '(none)'!r}; it runs {', '.join(formats)}",
            stage=order.stage_id,
        )


def single_file(order: StageOrder, suffix: str) -> Path:
    """Returns the one file of the artifact whose name ends with a suffix.

    Raises:
        LoadFailedError: there is none, or more than one.
    """
    found = [path for name, path in sorted(order.files.items()) if name.endswith(suffix)]
    if len(found) != 1:
        raise LoadFailedError(
            f"stage {order.stage_id}: its artifact must have exactly one {suffix} file,"
            f" it has {len(found)}",
            stage=order.stage_id,
        )
    return found[0]


class OptionReader:
    """Reads the options of one stage; each is asked for once, then `finish` refuses the rest."""

    def __init__(self, order: StageOrder) -> None:
        self._stage_id = order.stage_id
        self._left: dict[str, Any] = dict(order.options)  # JSON values, as in the order
        self._known: list[str] = []

    def text(self, name: str, default: str, *, choices: Sequence[str] = ()) -> str:
        """Returns a text, one of `choices` if there are any."""
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self._invalid(name, value, "a text")
        if choices and value not in choices:
            raise self._invalid(name, value, f"one of {', '.join(choices)}")
        return value

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        """Returns a list of non-empty texts, empty by default."""
        value = self._take(name, [])
        if (
            not isinstance(value, (list, tuple))
            or len(value) > most
            or not all(isinstance(item, str) and item for item in value)
        ):
            raise self._invalid(name, value, f"a list of up to {most} non-empty texts")
        return tuple(value)

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """Returns a whole number from `low` to `high`."""
        value = self._take(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._invalid(name, value, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        """Returns a number from `low` to `high`."""
        value = self._take(name, default)
        if (
            not isinstance(value, (int, float))
            or isinstance(value, bool)
            or not low <= value <= high
        ):
            raise self._invalid(name, value, f"a number from {low} to {high}")
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Returns true or false."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self._invalid(name, value, "true or false")
        return value

    def extents(self, name: str) -> Mapping[str, int]:
        """Returns extents by the names of dimensions, empty by default."""
        value = self._take(name, {})
        if not isinstance(value, Mapping) or not all(
            isinstance(key, str)
            and isinstance(extent, int)
            and not isinstance(extent, bool)
            and extent > 0
            for key, extent in value.items()
        ):
            raise self._invalid(name, value, "a mapping of dimension names to whole numbers over 0")
        return dict(value)

    def has(self, name: str) -> bool:
        """Whether the plan states an option that was not asked for yet."""
        return name in self._left

    def finish(self) -> None:
        """Refuses options that nobody asked for.

        Raises:
            FieldInvalidError: there is one.
        """
        for name in self._left:
            raise FieldInvalidError(
                f"stage {self._stage_id}: option {name!r} is unknown here;"
                f" known are {', '.join(sorted(self._known)) or 'none'}",
                stage=self._stage_id,
                option=name,
            )

    def _take(self, name: str, default: Any) -> Any:  # a JSON value, checked by the caller
        self._known.append(name)
        return self._left.pop(name, default)

    def _invalid(self, name: str, value: object, wanted: str) -> FieldInvalidError:
        return FieldInvalidError(
            f"stage {self._stage_id}: option {name!r} is {value!r}; it must be {wanted}",
            stage=self._stage_id,
            option=name,
        )


def library_capability(
    executor: str, formats: Sequence[str], distribution: str, module: str
) -> Capability:
    """Returns what an executor runs on the CPU with a library, or why not; imports nothing.

    Args:
        executor: Its name.
        formats: What it can load.
        distribution: Name under which the library is installed.
        module: What the executor imports of it.
    """
    if importlib.util.find_spec(module) is None:
        version = ""
        reason = f"{distribution} is not installed in this environment; build it from its lock"
    else:
        version, reason = importlib.metadata.version(distribution), ""
    return Capability(
        executor,
        "cpu",
        formats=tuple(formats),
        library_version=version,
        unavailable_reason=reason,
    )


def library_text(error: BaseException, *paths: Path) -> str:
    """Returns what a library said of a load, on one line and without paths of this machine.

    It is for whoever reads why a stage could not be loaded. A failure of a run carries no text of a
    library: let it pass, and the host logs it under an error id.

    Args:
        error: What the library raised.
        paths: Files and folders that it was given; each is shown by its name.
    """
    text = " ".join(str(error).split())
    for path in paths:
        text = text.replace(str(path), path.name)
    for folder in (sys.prefix, str(Path.home())):
        text = text.replace(folder, "") if folder != "/" else text
    return _FOLDERS.sub("", text)[:_LIBRARY_CHARACTERS]
