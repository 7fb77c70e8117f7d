"""Every plan of ours keeps what it promises, with real models."""

import json
import os
import subprocess
import sys

import pytest

from .conftest import READY_SECONDS, ROOT

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(2400)]
PLANS = sorted((ROOT / "plans").glob("*.yaml"))


@pytest.mark.parametrize("plan", PLANS, ids=lambda path: path.stem)
def test_a_plan_is_accepted(tmp_path, plan, leak_probe):
    record = tmp_path / "record.json"
    command = [sys.executable, "-m", "coordinator.cli.main", "accept", "--plan", str(plan)]
    result = subprocess.run(
        [*command, "--json", str(record), "--yes"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )

    assert result.returncode == 0, f"{result.stdout}\n{result.stderr[-4000:]}"
    found = json.loads(record.read_text())
    assert (found["verdict"], found["misses"], found["left"]) == ("accepted", [], [])
    assert found["cancellation"]["was_running"]
    for item in found["outcomes"]:
        first = item["first_output_seconds"] or 0
        print(f"{item['pipeline']} {item['example']}: {first:.2f} s, {item['seconds']:.2f} s")
    for item in found["budgets"]:
        peak, budget = item["peak_bytes"] >> 20, item["budget_bytes"] >> 20
        print(f"{item['owner']}: {peak} of {budget} MiB")
    assert list(tmp_path.iterdir()) == [record]
