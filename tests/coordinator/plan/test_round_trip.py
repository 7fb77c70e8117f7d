import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.facts.ports import DataTypeName
from coordinator.plan.loading import parse_plan
from coordinator.plan.schema import Plan
from stagewire.errors import PlanInvalidError

pytestmark = pytest.mark.unit


def reread(plan):
    """Returns the plan that is read from what a plan writes; JSON is YAML."""
    text = plan.model_dump_json(by_alias=True, exclude_none=True)
    return parse_plan(text.encode(), Path("written.yaml")).plan


def test_a_plan_that_is_written_is_read_back(small):
    plan = small.load().plan

    assert reread(plan) == plan


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
SIZES = st.integers(0, 1 << 49)
DURATIONS = st.floats(0.001, 604800)
PORTS = st.fixed_dictionaries(
    {"type": st.sampled_from([name.value for name in DataTypeName])},
    optional={
        "shape": st.lists(st.one_of(st.integers(1, 9), st.just("n<=7")), max_size=4),
        "stream": st.booleans(),
    },
)
PRINTABLE = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(PRINTABLE, max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def stages(draw):
    resident = draw(SIZES)
    return {
        "executor": draw(NAMES.filter(lambda name: name != "function")),
        "workers": ["cpu"],
        "inputs": draw(st.dictionaries(NAMES, PORTS, max_size=2)),
        "outputs": {"out": draw(PORTS)},
        "options": draw(st.dictionaries(NAMES, JSON, max_size=3)),
        "memory": {"resident": f"{resident}B", "load_peak": f"{resident + draw(SIZES)}B"},
        "limits": {"deadline": f"{draw(DURATIONS):.9f}s", "queue": draw(st.integers(0, 1024))},
        "threads": draw(st.integers(1, 256)),
        "keep": draw(st.sampled_from(["resident", "evictable"])),
    }


@given(st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_plan_that_is_written_is_read_back(data):
    drawn = data.draw(st.dictionaries(NAMES, stages(), min_size=1, max_size=3))
    first = next(iter(drawn))
    plan = Plan.model_validate_json(
        json.dumps(
            {
                "apiVersion": "stagewire/v1",
                "kind": "Plan",
                "metadata": {"name": "drawn"},
                "workers": {"cpu": {"kind": "cpu", "environment": "workers/cpu"}},
                "stages": drawn,
                "pipelines": {
                    "main": {
                        "inputs": {
                            f"in-{port}": f"{first}.{port}" for port in drawn[first]["inputs"]
                        },
                        "outputs": {"out": f"{first}.out"},
                    }
                },
            }
        )
    )

    assert reread(plan) == plan


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_in_any_place_makes_the_loader_fail(small, data):
    document = json.loads(small.load().plan.model_dump_json(by_alias=True, exclude_none=True))
    node = document
    while isinstance(node, dict | list) and node:
        key = data.draw(
            st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
        )
        parent, node = node, node[key]
        if data.draw(st.booleans()):
            break
    parent[key] = data.draw(JSON)

    with contextlib.suppress(PlanInvalidError):
        parse_plan(json.dumps(document).encode(), Path("p"))
