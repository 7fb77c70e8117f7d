"""What a coordinator does not import: every module costs time before READY, and memory after."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

WHOLE = """
import sys
import coordinator.app.coordinator
import coordinator.serve.listener, coordinator.serve.operators, coordinator.serve.public
print(*sorted({name.split(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""


def test_a_coordinator_passes_tensors_on_without_numpy_or_any_library_of_a_worker():
    unwanted = ["numpy", "rich", "onnxruntime", "torch", "psutil", "PIL", "grpc_tools"]
    code = subprocess.run(
        [sys.executable, "-I", "-c", WHOLE, *unwanted, "grpc"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert code.stdout.split() == ["grpc"]
