"""Each worker's own tests, in that worker's own environment built from its lock."""

import os
import subprocess
from pathlib import Path

import pytest
import uv

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

WORKERS = Path(__file__).resolve().parents[2] / "workers"
OURS = ("stagewire", "ortkit", "worker-cpu", "worker-speech")


def run_suite(worker: str, *arguments: str, models: Path | None = None) -> None:
    # Versions of our own packages do not change with their code, so they are installed anew.
    command = [
        *(uv.find_uv_bin(), "run", "--locked", "--directory", str(WORKERS / worker)),
        *(option for name in OURS for option in ("--reinstall-package", name)),
        *("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments),
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH")
    }
    environment |= {"OMP_NUM_THREADS": "1", "UV_NO_CONFIG": "1"}
    if models:
        environment["STAGEWIRE_TEST_MODELS"] = str(models)
    result = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]


@pytest.mark.parametrize("worker", ["ortkit", "cpu"])
def test_the_suite_of_a_worker_passes(worker):
    run_suite(worker, "-m", "not end_to_end")


@pytest.mark.end_to_end
@pytest.mark.parametrize("worker", ["cpu", "speech"])
def test_the_suite_of_a_worker_passes_on_real_models(worker, model_folder):
    run_suite(worker, "-m", "end_to_end", models=model_folder)
