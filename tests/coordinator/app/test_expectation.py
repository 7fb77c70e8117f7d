"""What the projects of the workers declare."""

import pytest

from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.plan.loading import load_plan

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
