"""A plan becomes a design, or is refused before anything starts."""

import json

import pytest

from coordinator.app.design import make_design
from coordinator.app.dry_run import explain
from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.app.stage_orders import load_order
from coordinator.devices.memory import HostMemory
from coordinator.facts.cores import HostCores
from coordinator.plan.loading import parse_plan
from stagewire.errors import ConstraintExceededError, PlacementRefusedError, PlanInvalidError

pytestmark = pytest.mark.unit

GIB = 1 << 30
MEMORY = HostMemory(16 * GIB, 12 * GIB, 0, 0, None, None)
PORTS = {"x": {"type": "float32", "shape": ["n<=16"]}}


def make_plan(tmp_path, **changes):
    document = {
        "apiVersion": "stagewire/v1",
        "kind": "Plan",
        "metadata": {"name": "tiny"},
        "workers": {"a": {"kind": "fake", "interpreter": {"linux": "/usr/bin/python3"}}},
        "stages": {
            "one": {
                "executor": "fake",
                "workers": ["a"],
                "inputs": PORTS,
                "outputs": {"y": PORTS["x"]},
                "memory": {"resident": "100MiB"},
            }
        },
        "pipelines": {"p": {"inputs": {"x": "one.x"}, "outputs": {"y": "one.y"}}},
    }
    for path, value in changes.items():
        target = document
        *parents, last = path.split("__")
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = value
    return parse_plan(json.dumps(document).encode(), tmp_path / "plan.yaml").plan


def design(plan, **options):
    rows = expected_rows(plan, checkout_root(), is_fake=False)
    return make_design(plan, rows, MEMORY, **options)


def test_a_plan_that_fits_is_placed_and_admitted(tmp_path):
    made = design(make_plan(tmp_path))

    assert made.stages_on("a") == ("one",)
    assert {line.reservation.owner for line in made.ledger.snapshot().reservations} == {
        "coordinator",
        "worker:a",
        "stage:one",
        "transport:one",
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"transport__arena": "256MiB"}, "transport.arena"),
        ({"stages__one__keep": "evictable"}, "stages.one.keep"),
        (
            {"stages__one__device__min_share_on_target": 0.5},
            "stages.one.device.min_share_on_target",
        ),
    ],
)
def test_what_would_be_ignored_is_refused(tmp_path, changes, field):
    with pytest.raises(PlanInvalidError, match=field):
        design(make_plan(tmp_path, **changes))


def test_a_worker_behind_windows_takes_no_stage(tmp_path):
    plan = make_plan(tmp_path, workers__a__interpreter={"windows": "auto"})
    with pytest.raises(PlacementRefusedError, match="Windows interpreter"):
        design(plan)


def test_a_plan_that_does_not_fit_is_refused_with_the_sum(tmp_path):
    with pytest.raises(ConstraintExceededError) as refusal:
        design(make_plan(tmp_path), quota_bytes=128 << 20)

    assert "stage:one" in refusal.value.message
    assert "machine:quota" in refusal.value.message


def test_only_the_stages_of_the_pipelines_that_are_asked_for_count(tmp_path):
    plan = make_plan(
        tmp_path,
        workers__b={"kind": "fake", "interpreter": {"linux": "/usr/bin/python3"}},
        stages__two={"executor": "fake", "workers": ["b"], "inputs": PORTS, "outputs": PORTS},
        pipelines__q={"inputs": {"x": "two.x"}, "outputs": {"x": "two.x"}},
    )

    assert design(plan).workers == ("a", "b")
    assert design(plan, pipelines=["p"]).workers == ("a",)


FOUR_CORES = HostCores(((0,), (1,), (2,), (3,)))


def test_stages_get_cores_of_their_own_and_the_worker_is_told(tmp_path):
    made = design(make_plan(tmp_path, stages__one__threads=2), cores=FOUR_CORES)

    assert str(made.cores["one"]) == "0-1"
    assert list(load_order(made, "one", None).cores) == [0, 1]
    assert [stage.cores for stage in explain(made).stages] == ["0-1"]


def test_where_the_cores_are_not_known_no_stage_keeps_to_any(tmp_path):
    made = design(make_plan(tmp_path))

    assert str(made.cores["one"]) == "any"
    assert not load_order(made, "one", None).cores
    assert explain(made).stages[0].cores_reason.endswith("not known")


def test_a_core_that_is_not_there_refuses_the_plan(tmp_path):
    with pytest.raises(PlacementRefusedError, match="cores 7 cannot be used"):
        design(make_plan(tmp_path, stages__one__cores=[7]), cores=FOUR_CORES)


def test_a_pace_reaches_the_worker(tmp_path):
    output = {**PORTS["x"], "stream": True, "per_second": 22050}
    plan = make_plan(tmp_path, stages__one__outputs={"y": output}, stages__one__pace="realtime")

    order = load_order(design(plan), "one", None)

    assert (order.realtime.port, order.realtime.per_second) == ("y", 22050)
    assert not load_order(design(make_plan(tmp_path)), "one", None).HasField("realtime")
