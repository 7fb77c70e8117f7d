"""Every field of a plan in one table, for `docs/plan-file.md` and for the command line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.plan.json_schema import plan_json_schema


@dataclass(frozen=True, slots=True)
class FieldExplanation:
    """What one field of a plan means."""

    path: str
    """Such as `stages.NAME.limits.queue`."""
    form: str
    """What is written, such as `text`, `whole number` or `list`."""
    is_required: bool
    default: str
    """As it would be written; empty when there is none."""
    meaning: str


def explain_fields() -> tuple[FieldExplanation, ...]:
    """Returns every field of a plan in the order of the schema."""
    root = plan_json_schema()
    return tuple(_fields(root, root["$defs"], ""))


def _fields(
    node: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str
) -> Iterator[FieldExplanation]:
    for name, member in node.get("properties", {}).items():
        target = _target(member, definitions)
        path = f"{prefix}{name}"
        yield FieldExplanation(
            path,
            _form(target),
            name in node.get("required", ()),
            _default(member),
            member.get("description", ""),
        )
        if entries := target.get("patternProperties"):
            (entry,) = entries.values()
            yield from _fields(_target(entry, definitions), definitions, f"{path}.NAME.")
        elif "items" in target:
            yield from _fields(_target(target["items"], definitions), definitions, f"{path}[].")
        else:
            yield from _fields(target, definitions, f"{path}.")


def _target(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follows a reference, and an optional field to what it holds."""
    branches = [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]
    if len(branches) == 1:
        node = branches[0]
    reference = node.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else node


def _form(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " | ".join(map(str, node["enum"]))
    if "const" in node:
        return str(node["const"])
    if "anyOf" in node or "oneOf" in node:
        return " or ".join(dict.fromkeys(map(_form, node.get("anyOf") or node["oneOf"])))
    words = {"string": "text", "integer": "whole number", "number": "number", "array": "list"}
    words |= {"object": "mapping", "boolean": "true | false"}
    return words.get(str(node.get("type")), "any value")


def _default(node: Mapping[str, Any]) -> str:
    value = node.get("default")
    if value is None or value in ({}, []) or isinstance(value, dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
