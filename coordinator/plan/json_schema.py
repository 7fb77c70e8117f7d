"""The JSON Schema of plans, which editors use while a plan is written.

`python -m coordinator.plan.json_schema > plans/plan.schema.json` writes the committed copy.
"""

import ast
import inspect
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from coordinator.plan import artifact_spec, example_spec, schema, stage_spec


def plan_json_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a plan, with the description of every field."""
    described = schema.Plan.model_json_schema(mode="validation")
    definitions = described.pop("$defs")
    facts = _field_facts()
    for name, definition in (*definitions.items(), ("Plan", described)):
        for spelled, member in definition.get("properties", {}).items():
            member.pop("title", None)
            member.update(facts[name][spelled])
            if "patternProperties" in member:
                # A name of another form is a mistake, not an addition.
                member["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stagewire plan",
        **{key: value for key, value in described.items() if key != "title"},
        "$defs": definitions,
    }


def render() -> str:
    """Returns the text of `plans/plan.schema.json`."""
    return json.dumps(plan_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _field_facts() -> dict[str, dict[str, dict[str, Any]]]:
    """Returns description and default of each field of each class as a plan would spell them.

    The descriptions are the sentences below the fields, read from the source here and not by
    pydantic, which would read it whenever a plan is loaded.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for module in (artifact_spec, example_spec, stage_spec, schema):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                fields = getattr(module, node.name).model_fields
                found[node.name] = dict(_facts_of(node, fields))
    return found


def _facts_of(
    node: ast.ClassDef, fields: Mapping[str, FieldInfo]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for member, after in itertools.pairwise(node.body):
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            field = fields[member.target.id]
            facts = {"description": _docstring(after)}
            if field.default is not PydanticUndefined:
                adapter = TypeAdapter(field.rebuild_annotation())
                facts["default"] = adapter.dump_python(field.default, mode="json")
            yield field.alias or member.target.id, facts


def _docstring(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


if __name__ == "__main__":
    sys.stdout.write(render())
