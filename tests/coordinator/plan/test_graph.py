import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.ports import DataTypeName, Extent, PortType
from coordinator.plan.graph import Edge, build_graph
from coordinator.plan.loading import parse_plan
from coordinator.plan.ports import PortRef
from coordinator.plan.schema import PipelineSpec
from stagewire.errors import PipelineUnknownError, PlanInvalidError

pytestmark = pytest.mark.unit


def stage(inputs=(), outputs=("out",)):
    """Returns a stage whose ports are streams of text unless they say another type."""

    def ports(names):
        specs = {}
        for text in names:
            name, _, kind = text.partition(":")
            specs[name] = json.loads(kind) if kind else {"type": "utf8", "stream": True}
        return specs

    return {
        "executor": "fake",
        "workers": ["cpu"],
        "inputs": ports(inputs),
        "outputs": ports(outputs),
    }


def plan_text(stages, edges, inputs=None, outputs=None):
    document = {
        "apiVersion": "stagewire/v1",
        "kind": "Plan",
        "metadata": {"name": "graph"},
        "workers": {"cpu": {"kind": "cpu", "environment": "workers/cpu"}},
        "stages": stages,
        "pipelines": {
            "main": {
                "inputs": inputs or {},
                "edges": edges,
                "outputs": outputs or {"last": f"{list(stages)[-1]}.out"},
            }
        },
    }
    return json.dumps(document).encode()


def problems(refused, *arguments):
    """Returns the problems without their positions, which test_loading checks."""
    return [line.split(": ", 1)[1] for line in refused(plan_text(*arguments))]


def graph_of(*arguments):
    return build_graph(parse_plan(plan_text(*arguments), Path("p")).plan, "main")


def test_stages_come_after_all_that_feed_them():
    graph = graph_of(
        {
            "last": stage(["a", "b"]),
            "left": stage(["in"]),
            "right": stage(["in"]),
            "first": stage(),
        },
        [
            ["first.out", "left.in"],
            ["first.out", "right.in"],
            ["left.out", "last.a"],
            ["right.out", "last.b"],
        ],
        {},
        {"reply": "last.out", "early": "first.out"},
    )

    assert graph.stages == ("first", "left", "right", "last")
    assert graph.outputs == {"reply": PortRef("last", "out"), "early": PortRef("first", "out")}
    assert graph.edges == (
        Edge(PortRef("first", "out"), PortRef("left", "in")),
        Edge(PortRef("first", "out"), PortRef("right", "in")),
        Edge(PortRef("left", "out"), PortRef("last", "a")),
        Edge(PortRef("right", "out"), PortRef("last", "b")),
    )
    assert str(graph.edges[0]) == "first.out -> left.in"


def test_a_graph_knows_the_type_of_every_port(small):
    graph = build_graph(small.load().plan, "main")

    text = PortType(DataTypeName.UTF8, (), is_stream=True)
    assert graph.pipeline == "main"
    assert graph.inputs == {"audio": PortRef("hear", "audio")}
    assert graph.input_types == {
        PortRef("hear", "audio"): PortType(DataTypeName.FLOAT32, (Extent("samples", 100),)),
        PortRef("answer", "prompt"): text,
    }
    assert graph.output_types == {PortRef("hear", "text"): text, PortRef("answer", "text"): text}


def test_a_stage_that_no_port_mentions_is_not_in_the_graph():
    graph = graph_of({"unused": stage(["in"]), "only": stage()}, [])

    assert graph.stages == ("only",)


def test_an_input_and_an_output_of_one_name_are_two_ports():
    graph = graph_of({"a": stage(["x"], ["x"])}, [], {"in": "a.x"}, {"out": "a.x"})

    assert list(graph.input_types) == list(graph.output_types) == [PortRef("a", "x")]


def test_an_unknown_pipeline_is_refused_with_the_known_ones(small):
    with pytest.raises(PipelineUnknownError, match="it has main"):
        build_graph(small.load().plan, "mian")


def test_a_plan_made_by_hand_is_checked_too(small):
    plan = small.load().plan
    broken = plan.model_copy(
        update={"pipelines": {"main": PipelineSpec(outputs={"x": "nowhere.out"})}}
    )

    with pytest.raises(
        PlanInvalidError, match=r"pipelines\.main\.outputs\.x: names the stage"
    ) as refusal:
        build_graph(broken, "main")
    assert refusal.value.facts == {"problem_count": "1"}


def test_names_of_stages_and_ports_that_are_not_there(refused):
    stages = {"first": stage(), "second": stage(["in"])}
    assert problems(
        refused, stages, [["frist.out", "second.in"]], {"x": "zzz.in"}, {"y": "second.oot"}
    ) == [
        'pipelines.main.inputs.x: names the stage "zzz", which the plan does not describe;'
        " known are first, second",
        'pipelines.main.edges[0][0]: names the stage "frist", which the plan does not describe;'
        ' did you mean "first"?',
        'pipelines.main.outputs.y: names the output "oot", which stage second does not have;'
        ' did you mean "out"?',
    ]


def test_a_port_of_the_wrong_direction_is_named_as_such(refused):
    stages = {"first": stage(), "second": stage(["in"])}
    assert problems(refused, stages, [["second.in", "first.out"]], {"x": "second.in"}) == [
        'pipelines.main.edges[0][0]: names the output "in", which stage second does not have;'
        " second.in is an input; known are out",
        'pipelines.main.edges[0][1]: names the input "out", which stage first does not have;'
        " first.out is an output; none is declared",
    ]


def test_a_misspelled_port_is_not_listed_as_unfed_as_well(refused):
    stages = {"first": stage(), "second": stage(["prompt"])}
    assert problems(refused, stages, [["first.out", "second.promt"]]) == [
        'pipelines.main.edges[0][1]: names the input "promt", which stage second does not have;'
        ' did you mean "prompt"?'
    ]


def test_an_input_port_that_nothing_feeds(refused):
    stages = {"first": stage(["a", "b"]), "last": stage(["c"])}
    assert problems(refused, stages, [], {"x": "first.b"}) == [
        "pipelines.main: nothing feeds first.a; add an edge or an input of the pipeline that"
        " feeds it",
        "pipelines.main: nothing feeds last.c; add an edge or an input of the pipeline that"
        " feeds it",
    ]


def test_an_input_port_that_is_fed_twice(refused):
    stages = {"first": stage(), "other": stage(), "last": stage(["in"])}
    edges = [["first.out", "last.in"], ["other.out", "last.in"]]
    assert problems(refused, stages, edges, {"x": "last.in"}) == [
        "pipelines.main.edges[0][1]: feeds last.in, which pipelines.main.inputs.x feeds already;"
        " remove one of the two",
        "pipelines.main.edges[1][1]: feeds last.in, which pipelines.main.inputs.x feeds already;"
        " remove one of the two",
    ]


def test_ports_of_different_types(refused):
    stages = {
        "first": stage([], ['out:{"type": "float32", "shape": ["n<=9"]}', "text"]),
        "last": stage(['a:{"type": "float32", "shape": ["n<=5"]}', 'b:{"type": "utf8"}', "c"]),
    }
    edges = [["first.out", "last.a"], ["first.text", "last.b"], ["first.out", "last.c"]]
    assert problems(refused, stages, edges) == [
        "pipelines.main.edges[0]: first.out gives float32[n<=9], last.a takes float32[n<=5]:"
        " dimension"
        " 0 may reach 9, above 5; lower the bound of the output or raise that of the input",
        "pipelines.main.edges[1]: first.text gives stream of utf8, last.b takes utf8: a stream"
        " enters a"
        " port that takes one item; declare stream: true at the input",
        "pipelines.main.edges[2]: first.out gives float32[n<=9], last.c takes stream of utf8: their"
        " types differ; make both ports the same type, or add a stage that converts",
    ]


def test_a_cycle_is_shown_at_the_edge_that_closes_it(refused):
    stages = {"a": stage(["in", "back"]), "b": stage(["in"]), "c": stage(["in"])}
    edges = [["a.out", "b.in"], ["b.out", "c.in"], ["c.out", "a.back"]]
    (problem,) = problems(refused, stages, edges, {"x": "a.in"})

    path, _, what = problem.partition(": closes a cycle: ")
    cycle = what.removesuffix("; remove an edge of the cycle").split(" -> ")
    assert path == "pipelines.main.edges[2]"
    assert cycle[0] == cycle[-1]
    assert set(itertools.pairwise(cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}


def test_a_stage_that_feeds_itself_is_a_cycle(refused):
    assert problems(refused, {"a": stage(["in"])}, [["a.out", "a.in"]]) == [
        "pipelines.main.edges[0]: closes a cycle: a -> a; remove an edge of the cycle"
    ]


def test_every_cycle_is_told(refused):
    stages = {name: stage(["in"]) for name in "abcd"}
    edges = [["a.out", "b.in"], ["b.out", "a.in"], ["c.out", "d.in"], ["d.out", "c.in"]]

    found = problems(refused, stages, edges)

    assert [problem.partition(":")[0] for problem in found] == [
        "pipelines.main.edges[1]",
        "pipelines.main.edges[3]",
    ]


def test_missing_artifacts_and_workers(small):
    prompt = "workers: [cpu]\n    inputs:\n      prompt"
    changes = [("artifact: tiny", "artifact: tinny"), (prompt, prompt.replace("cpu", "cup"))]
    assert small.problems(*changes) == [
        'small.yaml:19:15: stages.hear.artifact: names the artifact "tinny", which the plan'
        " does not"
        ' describe; did you mean "tiny"?',
        'small.yaml:28:15: stages.answer.workers[0]: names the worker "cup", which the plan'
        " does not"
        ' describe; did you mean "cpu"?',
    ]


def test_a_required_device_needs_an_artifact(small):
    changes = (
        "artifact: tiny",
        "artifact: {npu: tiny, cpu: tinny}\n    device: {require: 'cuda:0'}",
    )
    assert small.problems(changes) == [
        "small.yaml:19:5: stages.hear.artifact: has none for the required device cuda:0; add"
        " an artifact"
        " for cuda, or require another device",
        'small.yaml:19:32: stages.hear.artifact.cpu: names the artifact "tinny", which the'
        " plan does not"
        ' describe; did you mean "tiny"?',
    ]


@given(st.data())
def test_any_graph_without_a_cycle_is_put_in_order(data):
    count = data.draw(st.integers(1, 8))
    names = data.draw(st.permutations([f"s{number}" for number in range(count)]))
    rank = data.draw(st.permutations(names))
    pairs = [(a, b) for index, a in enumerate(rank) for b in rank[index + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    stages = {name: stage([f"from-{a}" for a, b in chosen if b == name]) for name in names}

    graph = graph_of(
        stages,
        [[f"{a}.out", f"{b}.from-{a}"] for a, b in chosen],
        {},
        {f"of-{name}": f"{name}.out" for name in names},
    )

    assert sorted(graph.stages) == sorted(names)
    assert all(graph.stages.index(a) < graph.stages.index(b) for a, b in chosen)


def test_the_order_is_that_of_the_plan_where_edges_leave_a_choice():
    names = ["m", "c", "x", "a"]

    graph = graph_of(
        {name: stage() for name in names}, [], {}, {f"of-{name}": f"{name}.out" for name in names}
    )

    assert graph.stages == tuple(names)
