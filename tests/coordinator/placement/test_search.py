import pytest

from coordinator.devices.rows import CapabilityRow
from coordinator.facts.ids import ArtifactId, DeviceId, StageId, WorkerId
from coordinator.placement.requirement import (
    ArtifactChoice,
    DeviceRule,
    StagePlacement,
    StageRequirement,
    WorkerOffer,
)
from coordinator.placement.search import place
from stagewire.errors import PlacementRefusedError

pytestmark = pytest.mark.unit

CPU, NPU = WorkerId("cpu"), WorkerId("npu")
OFFERS = (WorkerOffer(CPU), WorkerOffer(NPU))
ANY_DEVICE = DeviceRule()
FP32 = ArtifactChoice(ArtifactId("eyes-fp32"), "onnx:fp32")
A16W8 = ArtifactChoice(ArtifactId("eyes-a16w8"), "onnx:a16w8")
CPU_ROW = CapabilityRow(CPU, "onnx", DeviceId("cpu"), ("onnx:fp32", "onnx:fp16"))
NPU_ROW = CapabilityRow(NPU, "onnx", DeviceId("npu:0"), ("onnx:a16w8",))
FUNCTION_ROW = CapabilityRow(CPU, "function", DeviceId("cpu"), functions=("resample", "split"))


def make_stage(
    rule: DeviceRule = ANY_DEVICE,
    artifacts: dict[str, ArtifactChoice] | None = None,
    workers: tuple[WorkerId, ...] = (NPU, CPU),
    name: str = "see",
) -> StageRequirement:
    artifacts = {"npu": A16W8, "cpu": FP32} if artifacts is None else artifacts
    return StageRequirement(StageId(name), "onnx", workers, rule, artifacts)


def place_one(
    stage: StageRequirement, *rows: CapabilityRow, offers: tuple[WorkerOffer, ...] = OFFERS
) -> StagePlacement:
    return place([stage], offers, rows or (CPU_ROW, NPU_ROW)).stages[stage.stage_id]


def refusal_of(stage: StageRequirement, *rows: CapabilityRow) -> str:
    with pytest.raises(PlacementRefusedError) as refusal:
        place([stage], OFFERS, rows or (CPU_ROW, NPU_ROW))
    return str(refusal.value)


def test_the_first_worker_that_can_take_a_stage_gets_it():
    placed = place_one(make_stage())

    assert (placed.worker_id, placed.device, placed.artifact) == (NPU, "npu:0", A16W8)
    assert placed.reason == "first in the order of its workers"
    assert not placed.is_fallback
    assert [str(item) for item in placed.lost] == [
        "cpu on worker cpu: npu:0 on worker npu comes first"
    ]


def test_a_preference_stands_above_the_order_of_workers():
    placed = place_one(make_stage(DeviceRule(prefer=("cpu", "npu"))))

    assert (placed.worker_id, placed.artifact) == (CPU, FP32)
    assert placed.reason == "preference 1 of 2, cpu"


def test_a_preferred_device_that_cannot_falls_through_and_is_recorded():
    broken = CapabilityRow(NPU, "onnx", DeviceId("npu:0"), unavailable_reason="install driver 1.5")

    placed = place_one(make_stage(DeviceRule(prefer=("npu", "igpu", "cpu"))), CPU_ROW, broken)

    assert (placed.worker_id, placed.is_fallback) == (CPU, True)
    assert placed.reason == "preference 3 of 3, cpu"
    assert [str(item) for item in placed.lost] == [
        "igpu: no worker of this stage offers it",
        "npu:0 on worker npu: executor onnx: install driver 1.5",
    ]


def test_a_required_device_is_never_replaced():
    broken = CapabilityRow(NPU, "onnx", DeviceId("npu:0"), unavailable_reason="install driver 1.5")

    assert refusal_of(make_stage(DeviceRule(require="npu")), CPU_ROW, broken).splitlines() == [
        "1 of 1 stages cannot be placed",
        "  see (executor onnx, requires npu, workers npu, cpu)",
        "    npu:0 on worker npu: executor onnx: install driver 1.5",
        "    cpu on worker cpu: the stage requires npu",
    ]


def test_a_required_device_that_nobody_has_is_named():
    text = refusal_of(make_stage(DeviceRule(require="cuda:1")))

    assert "cuda:1: no worker of this stage offers it" in text


def test_a_device_can_be_named_exactly_or_by_its_kind():
    assert place_one(make_stage(DeviceRule(require="npu:0"))).device == "npu:0"
    assert place_one(make_stage(DeviceRule(require="npu"))).device == "npu:0"
    assert "requires npu:1" in refusal_of(make_stage(DeviceRule(require="npu:1")))


def test_a_forbidden_device_is_never_taken():
    assert place_one(make_stage(DeviceRule(forbid=("npu",)))).worker_id == CPU
    text = refusal_of(make_stage(DeviceRule(forbid=("npu:0", "cpu"))))
    assert text.count("device.forbid names it") == 2


def test_a_device_that_the_preference_does_not_name_is_not_taken():
    text = refusal_of(make_stage(DeviceRule(prefer=("igpu",))))

    assert text.count("device.prefer does not name it") == 2


def test_one_artifact_for_every_device_is_taken_where_it_can_be_executed():
    placed = place_one(make_stage(artifacts={"": FP32}))

    assert (placed.worker_id, placed.artifact) == (CPU, FP32)
    assert "does not execute onnx:fp32 (eyes-fp32), only onnx:a16w8" in str(placed.lost[0])


def test_an_artifact_of_the_exact_device_stands_above_that_of_its_kind():
    artifacts = {"npu": FP32, "npu:0": A16W8, "": FP32}

    assert place_one(make_stage(artifacts=artifacts)).artifact == A16W8


def test_a_device_without_an_artifact_is_passed_over():
    placed = place_one(make_stage(artifacts={"cpu": FP32}))

    assert placed.worker_id == CPU
    assert "no artifact for it; there are some for cpu" in str(placed.lost[0])


def test_a_function_is_placed_where_it_is_shipped():
    stage = StageRequirement(StageId("split"), "function", (CPU,), function="split")

    placed = place_one(stage, CPU_ROW, FUNCTION_ROW)

    assert (placed.artifact, placed.reason) == (None, "the only device of its workers")


def test_a_function_that_nobody_ships_is_refused_with_those_that_are():
    stage = StageRequirement(StageId("split"), "function", (CPU,), function="splat")

    assert "it has no function splat, only resample, split" in refusal_of(stage, FUNCTION_ROW)


def test_an_executor_that_a_worker_lacks_is_refused_with_those_that_it_has():
    stage = StageRequirement(StageId("hear"), "whisper", (CPU,))

    text = refusal_of(stage, CPU_ROW, FUNCTION_ROW)

    assert "it has no executor whisper, only onnx, function" in text


def test_a_worker_that_is_absent_silent_or_unknown_says_so():
    offers = (WorkerOffer(NPU, "no Windows Python was found"), WorkerOffer(CPU))
    stage = make_stage(workers=(NPU, CPU, WorkerId("gpu")))

    with pytest.raises(PlacementRefusedError) as refusal:
        place([stage], offers, [])

    assert str(refusal.value).splitlines()[2:] == [
        "    worker npu: no Windows Python was found",
        "    worker cpu: it says nothing of what it can execute",
        "    worker gpu: the plan has no such worker",
    ]


def test_an_absent_optional_worker_is_recorded_and_passed_over():
    offers = (WorkerOffer(NPU, "no Windows Python was found"), WorkerOffer(CPU))

    placed = place_one(make_stage(DeviceRule(prefer=("npu", "cpu"))), CPU_ROW, offers=offers)

    assert (placed.worker_id, placed.is_fallback) == (CPU, True)
    assert str(placed.lost[0]) == "worker npu: no Windows Python was found"


def test_every_stage_without_a_place_is_refused_at_once():
    stages = [
        make_stage(DeviceRule(require="cuda"), name="a"),
        make_stage(name="message"),
        make_stage(DeviceRule(require="igpu"), name="retry_delay_ms"),
    ]

    with pytest.raises(PlacementRefusedError, match="2 of 3 stages") as refusal:
        place(stages, OFFERS, [CPU_ROW, NPU_ROW])

    assert set(refusal.value.facts) == {"stage:a", "stage:retry_delay_ms"}


def test_the_same_question_has_the_same_answer():
    stages = [make_stage(name="a"), make_stage(DeviceRule(prefer=("cpu",)), name="b")]

    answers = [place(stages, OFFERS, [CPU_ROW, NPU_ROW]) for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert list(answers[0].stages) == ["a", "b"]
