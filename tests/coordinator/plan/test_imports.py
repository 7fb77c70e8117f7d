import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

PURE = ("schema", "graph", "validation", "documents", "references", "json_schema", "explanation")


@pytest.mark.parametrize("module", [*PURE, "loading"])
def test_a_plan_needs_neither_wire_nor_arrays_nor_processes(module):
    code = (
        f"import sys, coordinator.plan.{module};"
        "print([m for m in ('grpc', 'numpy', 'google.protobuf', 'asyncio', 'subprocess', 'psutil')"
        " if m in sys.modules])"
    )

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )

    assert found.stdout.strip() == "[]"
