"""What the worker says about itself, in an interpreter that has loaded nothing."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

PROGRAM = """
import json, sys
from worker_cpu.executors import every_executor
rows = [row for executor in every_executor() for row in executor.describe()]
heavy = {
    "onnxruntime", "ctranslate2", "cv2", "faster_whisper", "xllamacpp", "tokenizers", "av",
}
print(json.dumps({
    "heavy": sorted(heavy & set(sys.modules)),
    "rows": [[row.executor, row.device, row.library_version, row.unavailable_reason]
             for row in rows],
    "functions": [name for row in rows for name in row.functions],
}))
"""


@pytest.fixture(scope="module")
def description() -> dict:
    result = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)


def test_describing_loads_no_library(description):
    assert description["heavy"] == []


def test_every_executor_is_available_with_its_version(description):
    assert [row[0] for row in description["rows"]] == ["onnx", "whisper", "llamacpp", "function"]
    assert all(device == "cpu" and not reason for _, device, _, reason in description["rows"])
    assert all(version for name, _, version, _ in description["rows"] if name != "function")


def test_the_functions_are_listed(description):
    assert description["functions"] == [
        *("compose_prompt", "page_boxes", "page_prepare", "page_text", "photo_prepare"),
        *("resample", "segment_voice", "split_sentences", "top_label"),
    ]


def test_the_worker_without_a_coordinator_ends_at_once():
    result = subprocess.run(
        [sys.executable, "-I", "-m", "worker_cpu"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert result.returncode != 0
