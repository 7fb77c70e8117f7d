import pytest
from pydantic import ValidationError

from coordinator.facts.ports import DataTypeName, Extent, PortType
from coordinator.facts.proof import Grade

pytestmark = pytest.mark.unit

HEX = "ab" * 32


def test_every_field_of_a_stage_is_read(small):
    plan = small.load(
        ("    artifact: tiny\n", "    artifact: {npu: tiny, cpu: tiny}\n    keep: evictable\n"),
        (
            "  answer:\n    executor",
            """\
    device: {prefer: [npu, "cpu:0"], forbid: [igpu], min_evidence: C, min_share_on_target: 0.5}
    memory: {resident: 260MiB, load_peak: 0.5GiB, per_request: 8 MiB}
    limits: {concurrency: 2, queue: 0, deadline: 1.5s, hang_timeout: 500ms}
    threads: 2
    options: {stop: [a, "no"], deep: {x: null, y: 1e-3}, on: true}
  answer:
    executor""",
        ),
    ).plan

    hear = plan.stages["hear"]
    assert hear.artifact == {"npu": "tiny", "cpu": "tiny"}
    assert hear.artifacts == ("tiny", "tiny")
    assert hear.keep == "evictable"
    assert hear.device.prefer == ("npu", "cpu:0")
    assert hear.device.min_evidence is Grade.C
    assert hear.device.min_share_on_target == 0.5
    assert hear.memory.model_dump() == {
        "resident": 260 << 20,
        "load_peak": 512 << 20,
        "per_request": 8 << 20,
    }
    assert (hear.limits.deadline, hear.limits.hang_timeout) == (1.5, 0.5)
    assert hear.options == {"stop": ["a", "no"], "deep": {"x": None, "y": 0.001}, "on": True}
    assert hear.inputs["audio"].port_type == PortType(
        DataTypeName.FLOAT32, (Extent("samples", 100),), is_stream=False
    )


def test_a_load_peaks_at_the_resident_size_unless_told_otherwise(small):
    plan = small.load(
        ("    function: upper", "    function: upper\n    memory: {resident: 5MiB}")
    ).plan

    assert plan.stages["answer"].memory.load_peak == 5 << 20


def test_an_artifact_knows_its_sources_and_size(small):
    first, second = (f"pypi:half-{n}==1.0@sha256:{HEX}#half/model.{n}" for n in "ab")
    plan = small.load(
        (
            "        from: file:models/tiny.onnx",
            f'        size: 7\n        join: ["{first}", "{second}"]',
        )
    ).plan

    artifact = plan.artifacts["tiny"]
    assert [str(source) for source in artifact.files[0].sources] == [first, second]
    assert artifact.size_bytes == 7
    assert small.load().plan.artifacts["tiny"].size_bytes is None
    assert [str(source) for source in small.load().plan.artifacts["tiny"].files[0].sources] == [
        "file:models/tiny.onnx"
    ]


def test_a_read_plan_does_not_change(small):
    plan = small.load().plan

    with pytest.raises(ValidationError):
        plan.stages["hear"].threads = 2
