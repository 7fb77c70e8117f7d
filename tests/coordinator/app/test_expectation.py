"""What the projects of the workers declare."""

import json

import pytest
import yaml

from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.plan.loading import load_plan, parse_plan
from stagewire.errors import PlanInvalidError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "plan", sorted((checkout_root() / "plans").glob("*.yaml")), ids=lambda path: path.name
)
def test_every_stage_of_the_shipped_plans_is_declared_by_its_workers(plan):
    loaded = load_plan(plan).plan
    rows = expected_rows(loaded, checkout_root(), is_fake=False)

    for stage in loaded.stages.values():
        for worker in stage.workers:
            row = next(
                row for row in rows if (row.worker_id, row.executor) == (worker, stage.executor)
            )
            assert {loaded.artifacts[name].format for name in stage.artifacts} <= set(row.formats)
            assert stage.function is None or stage.function in row.functions


def test_a_worker_of_another_kind_than_its_project_is_refused():
    content = yaml.safe_load((checkout_root() / "plans/voice.yaml").read_text())
    content["workers"]["cpu"]["kind"] = "cpuu"
    plan = parse_plan(json.dumps(content).encode(), checkout_root() / "plans" / "typo.yaml").plan

    with pytest.raises(PlanInvalidError, match="write cpu"):
        expected_rows(plan, checkout_root(), is_fake=False)
