import pytest

from coordinator.devices.cpu import HostCpu
from coordinator.devices.host import cpu_row
from coordinator.devices.probing import ProbeFailure, Unavailable
from coordinator.devices.rows import Answer, CapabilityRow, Route, device_kind
from coordinator.facts.ids import DeviceId, WorkerId

pytestmark = pytest.mark.unit

HOST = HostCpu("Test CPU 9000", 8, 4, 8, 2.5, ("avx2", "vnni"))
CPU = DeviceId("cpu")
WORKER = WorkerId("cpu")
ROUTE = Route(WORKER, CPU)
ROW = CapabilityRow(WORKER, "onnx", CPU, ("onnx:fp32", "onnx:fp16"))


def test_a_device_that_is_present_is_not_thereby_reachable_or_runnable():
    row = cpu_row(HOST)

    answers = (row.present.answer, row.reachable.answer, row.runnable.answer)
    assert answers == (Answer.YES, Answer.UNKNOWN, Answer.UNKNOWN)
    assert row.present.detail == "2 of 8 cores, quota 2.5, avx2, vnni"
    assert "--plan" in row.reachable.detail
    assert "coordinator up" in row.runnable.detail


def test_a_device_that_is_reachable_is_not_thereby_runnable():
    row = cpu_row(HOST, routes=[ROUTE], capabilities=[])

    assert (row.reachable.answer, row.runnable.answer) == (Answer.YES, Answer.NO)
    assert row.reachable.detail == "by cpu"


def test_a_device_is_runnable_by_what_an_attached_worker_says():
    row = cpu_row(HOST, routes=[ROUTE], capabilities=[ROW])

    assert row.runnable.answer is Answer.YES
    assert row.runnable.detail == "cpu onnx onnx:fp32, onnx:fp16"
    assert row.capabilities == (ROW,)


def test_a_route_that_leads_nowhere_says_why():
    row = cpu_row(HOST, routes=[Route(WORKER, CPU, "build its environment with --yes")])

    assert row.reachable.answer is Answer.NO
    assert row.reachable.detail == "cpu: build its environment with --yes"


def test_an_executor_that_cannot_run_says_why():
    broken = CapabilityRow(WORKER, "onnx", CPU, unavailable_reason="install libgomp1")

    row = cpu_row(HOST, capabilities=[broken])

    assert row.runnable.answer is Answer.NO
    assert row.runnable.detail == "cpu onnx: install libgomp1"


def test_routes_and_capabilities_of_other_devices_do_not_count():
    other = DeviceId("npu:0")

    row = cpu_row(HOST, [Route(WORKER, other)], [CapabilityRow(WORKER, "onnx", other)])

    assert (row.reachable.answer, row.runnable.answer) == (Answer.NO, Answer.NO)
    assert row.capabilities == ()


def test_a_cpu_that_could_not_be_read_is_not_called_absent():
    row = cpu_row(Unavailable(ProbeFailure.TIMED_OUT, "cpu did not answer within 5 s"))

    assert row.present.answer is Answer.UNKNOWN
    assert row.present.detail == "cpu did not answer within 5 s"


def test_the_kind_of_a_device_is_its_name_before_the_number():
    assert (device_kind(DeviceId("cuda:0")), device_kind(CPU)) == ("cuda", "cpu")
