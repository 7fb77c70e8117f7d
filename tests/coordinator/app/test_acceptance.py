"""A plan behind the mask: what it becomes where nothing but the CPU is there."""

from pathlib import Path

import pytest

from coordinator.app.acceptance import behind_mask, plan_masked
from coordinator.app.settings import Settings
from coordinator.devices.rows import CapabilityRow
from coordinator.facts.ids import DeviceId, WorkerId
from coordinator.plan.loading import load_plan
from testkit import plans

pytestmark = pytest.mark.integration
VOICE = Path(__file__).resolve().parents[3] / "plans" / "voice.yaml"


def settings(path, tmp_path, **more):
    return Settings(path, tmp_path / "state", tmp_path / "cache", **more)


def test_the_mask_lets_the_cpu_through_and_nothing_else():
    rows = [
        CapabilityRow(WorkerId("a"), "onnx", DeviceId(device))
        for device in ("cpu", "cuda:0", "npu:0", "dml:1", "cpu")
    ]

    assert [row.device for row in behind_mask(rows)] == ["cpu", "cpu"]


def test_a_plan_of_the_cpu_is_admitted_behind_it(tmp_path):
    found = plan_masked(settings(VOICE, tmp_path), load_plan(VOICE))

    assert found.is_admitted
    assert (found.devices, found.hidden_routes, found.refusal) == ("cpu", 0, "")
    assert found.placement["hear"] == "cpu/cpu"
    assert found.placement["speak"] == "speech/cpu"
    assert found.reserved_bytes > 1 << 30


def test_one_pipeline_is_planned_alone(tmp_path):
    found = plan_masked(settings(VOICE, tmp_path, pipelines=("dictate",)), load_plan(VOICE))

    assert set(found.placement) == {"resample", "listen", "hear"}


def test_a_plan_that_needs_what_is_hidden_is_refused_with_the_reason(tmp_path):
    path = plans.write(tmp_path, plans.single(device={"require": "cuda"}))

    found = plan_masked(settings(path, tmp_path), load_plan(path))

    assert not found.is_admitted
    assert found.refusal.startswith("NO_RUNNABLE_DEVICE: ")
    assert found.placement == {}
