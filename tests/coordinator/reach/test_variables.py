"""What workers see of the environment."""

import pytest

from coordinator.reach.variables import worker_environment

pytestmark = pytest.mark.unit


def test_libraries_are_told_to_report_nothing_and_to_keep_to_their_threads(monkeypatch):
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "x")

    variables = worker_environment(3)

    assert variables["ORT_DISABLE_TELEMETRY"] == variables["HF_HUB_OFFLINE"] == "1"
    assert variables["OMP_NUM_THREADS"] == "3"
    assert "SECRET_OF_THE_SHELL" not in variables
