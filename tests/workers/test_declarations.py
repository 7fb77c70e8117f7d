"""What a worker's project declares is what the worker says of itself."""

import json
from pathlib import Path

import pytest
import tomllib

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

WORKERS = Path(__file__).resolve().parents[2] / "workers"
ASK = """
import dataclasses, json
from {module} import executors
rows = [row for executor in executors.every_executor() for row in executor.describe()]
print(json.dumps([dataclasses.asdict(row) for row in rows]))
"""


@pytest.mark.parametrize("worker", ["cpu", "speech"])
def test_the_declaration_of_a_worker_is_what_it_describes(run_python, worker):
    answer = run_python(worker, "-c", ASK.format(module=f"worker_{worker}"))
    described = {
        (row["executor"], row["device"]): (set(row["formats"]), set(row["functions"]))
        for row in json.loads(answer)
    }
    project = tomllib.loads((WORKERS / worker / "pyproject.toml").read_text())
    declared = {
        (row["executor"], row["device"]): (
            set(row.get("formats", ())),
            set(row.get("functions", ())),
        )
        for row in project["tool"]["stagewire"]["executes"]
    }

    assert declared == described
