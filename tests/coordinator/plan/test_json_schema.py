import re
from pathlib import Path

import pytest

from coordinator.plan.explanation import explain_fields
from coordinator.plan.json_schema import plan_json_schema, render

pytestmark = pytest.mark.unit

COMMITTED = Path(__file__).parents[3] / "plans" / "plan.schema.json"


def nodes(node):
    if isinstance(node, dict):
        yield node
    for inner in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from nodes(inner)


def test_the_committed_schema_is_fresh():
    assert COMMITTED.read_text(encoding="utf-8") == render(), (
        "run: python -m coordinator.plan.json_schema > plans/plan.schema.json"
    )


def test_every_field_is_described():
    described = [(entry.path, entry.meaning) for entry in explain_fields()]

    assert len(described) > 50
    assert all(re.fullmatch(r"[A-Z].*\.", meaning) for _, meaning in described), described


def test_every_pattern_is_one_that_editors_understand():
    patterns = [node["pattern"] for node in nodes(plan_json_schema()) if "pattern" in node]

    assert patterns
    assert all(pattern.startswith("^") and pattern.endswith("$") for pattern in patterns)
    assert not [pattern for pattern in patterns if re.search(r"\(\?[^:]|\\[AZ]", pattern)]


def test_nothing_undeclared_is_allowed_anywhere():
    schema = plan_json_schema()

    assert schema["additionalProperties"] is False
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            assert definition["additionalProperties"] is False, name


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("stages.NAME.limits.queue", "8"),
        ("stages.NAME.limits.deadline", "30s"),
        ("policies.os_reserve", "2GiB"),
        ("stages.NAME.keep", "resident"),
        ("workers.NAME.optional", "false"),
        ("stages.NAME.executor", ""),
    ],
)
def test_defaults_are_explained_as_a_plan_would_spell_them(path, default):
    (entry,) = [entry for entry in explain_fields() if entry.path == path]

    assert entry.default == default


def test_required_fields_are_explained_as_such():
    required = {entry.path for entry in explain_fields() if entry.is_required}

    assert {
        "apiVersion",
        "stages",
        "stages.NAME.executor",
        "artifacts.NAME.files[].sha256",
    } <= required
    assert "stages.NAME.artifact" not in required
