"""The sample plans with something wrong in them: still a plan, or told what is wrong and where."""

import copy
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.plan.loading import parse_plan
from stagewire.errors import PlanInvalidError

pytestmark = pytest.mark.unit

PLANS = sorted((Path(__file__).resolve().parents[3] / "plans").glob("*.yaml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PLANS}
NAMES = st.sampled_from(list(TEXTS))
PROBLEM = re.compile(r"p\.yaml:(\d+):(\d+): (\S.*?): (.+); (.+)|p\.yaml: \d+ more problems .+")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["1MiB", "-1MiB", "9" * 40 + "GiB", "1s", "0s", "a.b", "n<=9", "../x", "int4"]),
    st.sampled_from([2**31, 2**63, 2**64, -1, 0, "", " ", "~", "*a", "&a", "!!python/name:os"]),
)
BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)


def containers(node):
    """Every mapping and list of a plan that holds something."""
    if isinstance(node, dict | list) and node:
        yield node
        for inner in list(node.values() if isinstance(node, dict) else node):
            yield from containers(inner)


def keys_of(node):
    return sorted(node) if isinstance(node, dict) else range(len(node))


def mutate(data, plan):
    """Makes one change somewhere in a plan."""
    places = list(containers(plan))
    node = data.draw(st.sampled_from(places))
    key = data.draw(st.sampled_from(keys_of(node)))
    match data.draw(st.sampled_from(["replace", "remove", "rename", "add", "move", "wrap"])):
        case "replace":
            node[key] = data.draw(VALUES)
        case "remove":
            del node[key]
        case "rename" if isinstance(node, dict):
            node[data.draw(st.text(max_size=8))] = node.pop(key)
        case "add" if isinstance(node, dict):
            node[data.draw(st.text(max_size=8))] = data.draw(VALUES)
        case "move":
            other = data.draw(st.sampled_from(places))
            # A copy: moved into itself, a part would have no end.
            moved = other[data.draw(st.sampled_from(keys_of(other)))] if other else None
            node[key] = copy.deepcopy(moved)
        case _:
            node[key] = [node[key]]


def read(text):
    """Returns the lines of the refusal of a plan, after seeing that each has its place in it."""
    content = text.encode("utf-8", "surrogatepass")
    try:
        loaded = parse_plan(content, Path("p.yaml"))
    except PlanInvalidError as refusal:
        lines = refusal.message.splitlines()
        places = BREAK.split(text.removeprefix("\ufeff"))
        for line in lines:
            found = PROBLEM.fullmatch(line)
            assert found, line
            if found[1] is not None:
                assert 1 <= int(found[1]) <= len(places), line
                assert 1 <= int(found[2]) <= len(places[int(found[1]) - 1]) + 1, line
        assert lines
        return lines
    assert loaded.where(())
    return []


@pytest.mark.parametrize("name", TEXTS)
def test_the_sample_plans_themselves_are_read(name):
    assert read(TEXTS[name]) == []


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(name=NAMES, data=st.data())
def test_a_plan_with_changed_values_is_read_or_told_where_it_is_wrong(name, data):
    plan = yaml.safe_load(TEXTS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        if plan:
            mutate(data, plan)
    # Values that stand in the tree twice become anchors, which a plan may not have.
    read(yaml.safe_dump(plan, sort_keys=False, allow_unicode=data.draw(st.booleans())))


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(name=NAMES, data=st.data())
def test_a_plan_with_changed_lines_is_read_or_told_where_it_is_wrong(name, data):
    lines = TEXTS[name].splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        place = data.draw(st.integers(0, len(line)))
        lines[number : number + 1] = data.draw(
            st.sampled_from(
                [
                    [],
                    [line, line],
                    [" " + line],
                    [line.lstrip()],
                    [line[:place]],
                    [line[:place] + data.draw(st.text(max_size=3)) + line[place:]],
                    ["\t" + line],
                ]
            )
        )
    read("\n".join(lines))


def test_a_name_that_would_break_a_line_is_escaped_where_it_is_suggested():
    text = TEXTS["label.yaml"].replace("  smollm2:\n    format", '  "smol\\flm2":\n    format')
    assert "smol\\\\x0clm2" in repr(read(text)[-1])
