"""Each worker's own tests, in that worker's own environment built from its lock."""

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.parametrize("worker", ["ortkit", "cpu", "speech"])
def test_the_suite_of_a_worker_passes(run_python, worker):
    run_python(worker, *PYTEST, "-m", "not end_to_end", OMP_NUM_THREADS="1")


@pytest.mark.end_to_end
@pytest.mark.parametrize("worker", ["cpu", "speech"])
def test_the_suite_of_a_worker_passes_on_real_models(run_python, worker, model_folder):
    models = str(model_folder)
    run_python(
        worker, *PYTEST, "-m", "end_to_end", OMP_NUM_THREADS="1", STAGEWIRE_TEST_MODELS=models
    )
