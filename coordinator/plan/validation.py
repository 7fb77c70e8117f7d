"""From the values of a document to a `Plan`, or to problems in the words of a plan's author."""

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coordinator.plan.documents import Document, Json
from coordinator.plan.positions import FieldPath
from coordinator.plan.problems import Problem, shown, suggest
from coordinator.plan.references import PlanParts
from coordinator.plan.schema import ArtifactSpec, PipelineSpec, Plan, StageSpec, WorkerSpec
from coordinator.plan.sources import SHA256_PATTERN

_Spec = TypeVar("_Spec", bound=BaseModel)
_NAME_REMEDY = "use a-z, 0-9, - and _, beginning with a letter or digit"
_MAPPING = ("must be a mapping", "write NAME: VALUE on lines below it")
_LIST = ("must be a list", "write its entries in brackets")
_WHOLE_NUMBER = ("must be a whole number", "write digits alone")
_KINDS = {
    "string_type": ("must be text", "put it in quotes"),
    "int_type": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "float_type": ("must be a number", "write one such as 0.5"),
    "bool_type": ("must be true or false", "write one of the two"),
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "tuple_type": _LIST,
    "list_type": _LIST,
    "artifact_choice": (
        "must be the name of an artifact, or a mapping of device kinds to names",
        "write one name",
    ),
}


def validate(document: Document) -> tuple[Plan | None, PlanParts, list[Problem]]:
    """Checks every field of a document.

    Returns the plan when all are right, the right entries for the checks between entries, and the
    problems of the others.
    """
    try:
        plan = _parse(Plan, document.value)
    except ValidationError as error:
        found = [_problem(details, document.value) for details in error.errors(include_url=False)]
        return None, _parts(document.value), [problem for problem in found if problem is not None]
    return plan, PlanParts.of(plan), []


def _parse(model: type[_Spec], value: Json) -> _Spec:
    # As JSON and strict: nothing is converted, and lists still become tuples.
    return model.model_validate_json(json.dumps(value), strict=True)


def _parts(value: Json) -> PlanParts:
    root: Mapping[str, Json] = value if isinstance(value, dict) else {}

    def section(name: str, model: type[_Spec]) -> dict[Any, _Spec | None] | None:
        entries = root.get(name, {} if name == "artifacts" else None)
        if not isinstance(entries, dict):
            return None
        return {entry: _parsed_or_none(model, entries[entry]) for entry in entries}

    return PlanParts(
        artifacts=section("artifacts", ArtifactSpec),
        workers=section("workers", WorkerSpec),
        stages=section("stages", StageSpec),
        pipelines=section("pipelines", PipelineSpec),
    )


def _parsed_or_none(model: type[_Spec], value: Json) -> _Spec | None:
    try:
        return _parse(model, value)
    except ValidationError:
        # Its problems were listed with those of the whole plan.
        return None


def _problem(details: ErrorDetails, root: Json) -> Problem | None:
    kind = details["type"]
    path, value = _field_path(details, root)
    if kind == "default_factory_not_called" or (
        kind == "too_short" and len(value) >= details["ctx"]["min_length"]
    ):
        # Follows from another problem of the same entry: broken entries of a list are not counted.
        return None
    if kind == "missing":
        return _missing(path)
    if kind == "extra_forbidden":
        remedy = suggest(str(path[-1]), _known_fields(path[:-1]))
        return Problem(path, "is not a known field", remedy, is_about_key=True)
    is_about_key = details["loc"][-1:] == ("[key]",) or isinstance(value, dict)
    what, remedy = _words(details, value if details["loc"][-1:] != ("[key]",) else path[-1])
    return Problem(path, what, remedy, is_about_key)


def _field_path(details: ErrorDetails, root: Json) -> tuple[FieldPath, Json]:
    """Leaves out the parts of a location that are not in the file, such as branches of unions."""
    path: FieldPath = ()
    value = root
    parts = details["loc"]
    for number, part in enumerate(parts):
        is_present = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if is_present:
            path, value = (*path, part), value[part]
        elif details["type"] == "missing" and number == len(parts) - 1:
            path = (*path, part)
    return path, value


def _missing(path: FieldPath) -> Problem:
    if isinstance(path[-1], int):
        what, remedy = "must be a pair", "write [stage.output, stage.input]"
        return Problem(path[:-1], what, remedy)
    return Problem(path, "is missing", "add it", is_about_key=True)


def _words(details: ErrorDetails, value: Json) -> tuple[str, str]:
    """Returns what is wrong and the remedy."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "value_error":
        what, _, remedy = str(context["error"]).partition("; ")
        return (what if isinstance(value, dict) else f"{shown(value)} {what}"), remedy
    if kind in _KINDS:
        what, remedy = _KINDS[kind]
        if kind == "string_type" and (value is None or not _is_scalar(value)):
            remedy = "write a text"
        return f"{what}, not {_described(value)}", remedy
    if kind in {"literal_error", "enum"}:
        known = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        return f"{shown(value)} is not allowed here", suggest(str(value), known)
    if kind == "string_pattern_mismatch":
        return f"{shown(value)} has the wrong form", _pattern_remedy(context["pattern"])
    return _range_words(kind, context, value)


def _range_words(kind: str, context: Mapping[str, Any], value: Json) -> tuple[str, str]:
    phrases: dict[str, Callable[[], tuple[str, str]]] = {
        "greater_than_equal": lambda: ("is too small", f"write {context['ge']} or more"),
        "less_than_equal": lambda: ("is too large", f"write {context['le']} or less"),
        "too_short": lambda: ("has too few entries", f"write at least {context['min_length']}"),
        "too_long": lambda: ("has too many entries", f"write at most {context['max_length']}"),
        "string_too_short": lambda: ("is empty", "write a text"),
        "string_too_long": lambda: (
            "is too long",
            f"write at most {context['max_length']} characters",
        ),
    }
    if kind in phrases:
        what, remedy = phrases[kind]()
        return (f"{shown(value)} {what}" if _is_scalar(value) else what), remedy
    return f"{_described(value)} is not allowed here ({kind})", "read the schema of this field"


def _pattern_remedy(pattern: str) -> str:
    if pattern == SHA256_PATTERN:
        return "write the 64 lower-case hexadecimal digits of a sha256"
    if ":" in pattern:
        return "write a name such as cuda:0" if "[0-9]{1,3}" in pattern else "write NAME:VARIANT"
    return _NAME_REMEDY


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


def _described(value: Json) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else shown(value)


@functools.cache
def _schema() -> dict[str, Any]:
    return Plan.model_json_schema()


def _known_fields(path: FieldPath) -> tuple[str, ...]:
    """Returns the fields that the entry at a path may have."""
    definitions = _schema()["$defs"]
    node = _schema()
    for part in path:
        node = _resolve(node, definitions)
        if isinstance(part, int):
            node = node.get("items", {})
        else:
            entries = iter(node.get("patternProperties", {}).values())
            node = node.get("properties", {}).get(part) or next(entries, {})
    return tuple(_resolve(node, definitions).get("properties", {}))


def _resolve(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Follows references, and an optional entry to the entry itself."""
    for branch in node.get("anyOf", ()):
        if "$ref" in branch:
            node = branch
    if "$ref" in node:
        return dict(definitions[node["$ref"].rpartition("/")[2]])
    return node
