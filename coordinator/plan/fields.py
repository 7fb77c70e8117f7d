"""Types of single fields of a plan: how each is read, checked, written back and described."""

from typing import Annotated, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Discriminator,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
)

from coordinator.facts.ids import ArtifactId, PipelineId, PortId, StageId, WorkerId
from coordinator.facts.ports import Extent
from coordinator.facts.proof import Grade
from coordinator.facts.sizes import parse_size
from coordinator.plan.durations import DURATION_PATTERN, format_duration, parse_duration
from coordinator.plan.ports import (
    EXTENT_PATTERN,
    PORT_NAME_PATTERN,
    PORT_REF_PATTERN,
    PortRef,
    parse_extent,
    parse_port_ref,
)
from coordinator.plan.sources import (
    SHA256_PATTERN,
    SOURCE_PATTERN,
    Source,
    check_relative_path,
    parse_source,
)
from stagewire.limits import ID_PATTERN

_SIZE_PATTERN = r"^[0-9]{1,15}(\.[0-9]{1,6})?\s?(B|KiB|MiB|GiB|TiB)$"
_LARGEST_SIZE = 1 << 50
_TEXT_CHARACTERS = 4096
_LAST_CORE = 8191
"""Highest number of a hardware thread that Linux can be built for."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text; put it in quotes")  # noqa: TRY004 - pydantic wants it
    return value


def _size(value: object) -> int:
    """A number without unit is refused: whether bytes or MiB were meant cannot be known."""
    if not isinstance(value, str):
        raise ValueError("is not a size; write a number and a unit, such as 260MiB")  # noqa: TRY004
    # Bounded before it is read, so that no amount of digits overflows.
    text = value if len(value) <= 32 and value.isascii() else ""  # noqa: PLR2004
    try:
        size_bytes = parse_size(text)
    except ValueError:
        raise ValueError(
            "is not a size; write a number and B, KiB, MiB, GiB or TiB, such as 260MiB"
        ) from None
    if size_bytes > _LARGEST_SIZE:
        raise ValueError("is too large; a size is at most 1024TiB")
    return size_bytes


def _spelled_size(size_bytes: int) -> str:
    """Exact, unlike the sizes that people are shown."""
    for exponent, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes and size_bytes % (1 << exponent) == 0:
            return f"{size_bytes >> exponent}{unit}"
    return f"{size_bytes}B"


def _grade(value: object) -> Grade:
    if isinstance(value, str) and value in Grade.__members__:
        return Grade[value]
    raise ValueError("is not a grade; write E, D, B, C or P")


def _cores(value: object) -> Literal["auto", "shared"] | tuple[int, ...]:
    if value == "auto" or value == "shared":  # noqa: PLR1714 - mypy narrows this
        return value
    cores = tuple(value) if isinstance(value, (list, tuple)) else ()
    if not cores or any(type(core) is not int or not 0 <= core <= _LAST_CORE for core in cores):
        raise ValueError("is no set of cores; write auto, shared, or numbers such as [0, 1]")
    if len(set(cores)) < len(cores):
        raise ValueError("names a core twice; remove one")
    return cores


def _printable(value: str) -> str:
    if any(ord(character) < ord(" ") for character in value):
        raise ValueError("holds a control character; remove it")
    return value


def _absolute_interpreter(value: str) -> str:
    if value != "auto" and not value.startswith("/") and value[1:3] not in {":\\", ":/"}:
        raise ValueError("is not an absolute path; write the whole path of the interpreter")
    return value


ArtifactName: TypeAlias = Annotated[ArtifactId, StringConstraints(pattern=ID_PATTERN)]
WorkerName: TypeAlias = Annotated[WorkerId, StringConstraints(pattern=ID_PATTERN)]
PipelineName: TypeAlias = Annotated[PipelineId, StringConstraints(pattern=ID_PATTERN)]
StageName: TypeAlias = Annotated[StageId, StringConstraints(pattern=PORT_NAME_PATTERN)]
PortName: TypeAlias = Annotated[PortId, StringConstraints(pattern=PORT_NAME_PATTERN)]
ValueName: TypeAlias = Annotated[str, StringConstraints(pattern=PORT_NAME_PATTERN)]
"""Name that clients use for an input or output of a pipeline."""
Word: TypeAlias = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_-]{0,63}$")]
"""Name of something outside the plan: an executor, a function, a worker kind."""

Line: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=_TEXT_CHARACTERS), AfterValidator(_printable)
]
RelativePath: TypeAlias = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(check_relative_path)
]
InterpreterPath: TypeAlias = Annotated[Line, AfterValidator(_absolute_interpreter)]
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=SHA256_PATTERN)]
ArtifactFormat: TypeAlias = Annotated[
    str, StringConstraints(pattern="^[a-z][a-z0-9_.-]{0,31}(:[a-z0-9][a-z0-9_.-]{0,31})?$")
]
DeviceName: TypeAlias = Annotated[
    str, StringConstraints(pattern="^[a-z][a-z0-9]{0,15}(:[0-9]{1,3})?$")
]
"""A device kind such as `cuda`, or one device such as `cuda:0`."""

Size: TypeAlias = Annotated[
    int,
    PlainValidator(_size),
    PlainSerializer(_spelled_size, str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN}),
]
"""Bytes, written with a unit."""
Duration: TypeAlias = Annotated[
    float,
    PlainValidator(lambda value: parse_duration(_text(value))),
    PlainSerializer(format_duration, str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
"""Seconds, written with a unit."""
ArtifactSource: TypeAlias = Annotated[
    Source,
    PlainValidator(lambda value: parse_source(_text(value))),
    PlainSerializer(str, str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": SOURCE_PATTERN}),
]
PortReference: TypeAlias = Annotated[
    PortRef,
    PlainValidator(lambda value: parse_port_ref(_text(value))),
    PlainSerializer(str, str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": PORT_REF_PATTERN}),
]
ExtentField: TypeAlias = Annotated[
    Extent,
    PlainValidator(parse_extent),
    PlainSerializer(
        lambda extent: str(extent) if extent.name else extent.max_extent, when_used="json"
    ),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": EXTENT_PATTERN},
            ]
        }
    ),
]
GradeField: TypeAlias = Annotated[
    Grade,
    PlainValidator(_grade),
    PlainSerializer(lambda grade: grade.name, str, when_used="json"),
    WithJsonSchema({"enum": list(Grade.__members__)}),
]
CoresField: TypeAlias = Annotated[
    Literal["auto", "shared"] | tuple[int, ...],
    PlainValidator(_cores),
    PlainSerializer(
        lambda cores: cores if isinstance(cores, str) else list(cores), when_used="json"
    ),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["auto", "shared"]},
                {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": _LAST_CORE},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            ]
        }
    ),
]
"""Hardware threads by number, or how they are chosen."""
Options: TypeAlias = dict[Annotated[str, StringConstraints(max_length=64)], JsonValue]


def _artifact_form(value: object) -> str | None:
    if isinstance(value, str):
        return "one"
    return "by_device" if isinstance(value, dict) else None


ArtifactChoice: TypeAlias = Annotated[
    Annotated[ArtifactName, Tag("one")]
    | Annotated[dict[DeviceName, ArtifactName], Tag("by_device")],
    Discriminator(
        _artifact_form,
        custom_error_type="artifact_choice",
        custom_error_message="must be the name of an artifact, or one name for each device kind",
    ),
]
"""One artifact, or one for each device kind."""
