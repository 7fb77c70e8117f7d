"""A plan comes up, answers and goes down again."""

import numpy as np
import pytest
from testkit import plans
from testkit.running import running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]


async def test_a_request_goes_through_two_workers_and_leaves_nothing(tmp_path):
    async with running(tmp_path, plans.chain()) as it:
        sent = np.arange(10, dtype=np.float32)

        result = await it.run("p", {"x": sent})

        assert np.array_equal(result.outputs["y"][0], sent)
        assert [(run.stage_id, run.worker_id) for run in result.receipt.stages] == [
            ("one", "a"),
            ("two", "b"),
        ]
