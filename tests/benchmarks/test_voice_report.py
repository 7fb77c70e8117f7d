import pytest

from benchmarks import voice_report
from benchmarks.answers import Answered
from benchmarks.processes import Memory
from benchmarks.readiness import Start
from benchmarks.voice import Measured, Resident, Turn

pytestmark = pytest.mark.unit

MIB = 2**20


def make_turn(seconds, first, *, idle=0.0, others=0.0):
    answered = Answered(seconds, first, "What?", "That. And this.", 2, 1000)
    cpu = {"workers": seconds, "coordinator": 0.1, "reference": 0.0, "client": 0.0}
    stages = {"hear": 1.0, "answer": 2.0, "speak": 3.0}
    return Turn(answered, cpu, idle, others, stages)


def make_measured(product, reference, *, ready=3.0, workers=135):
    start = Start(
        ready,
        {"endpoint": 0.5, "ready": ready},
        {"cpu": 0.5, "speech": 0.4},
        {"cpu": 1.0, "speech": 0.5},
    )
    return Measured(
        starts=(start,) * 3,
        turns={"product": product, "reference": reference},
        residents={
            "product": Resident(Memory(workers * MIB, 0), workers * MIB),
            "reference": Resident(Memory(60 * MIB, 40 * MIB), 100 * MIB),
        },
        coordinator_memory=Memory(50 * MIB, 0),
        tokens=100,
        loaded={},
    )


def test_every_promise_is_judged():
    measured = make_measured((make_turn(5.0, 2.0),) * 3, (make_turn(5.0, 3.0),) * 3, ready=2.95)

    found = voice_report.conclude(measured)

    assert [item.is_met for item in found.criteria] == [True] * 5
    assert [round(item.value, 2) for item in found.criteria] == [1.0, 0.4, 1.35, 1.35, 2.95]
    assert found.criteria[4].limit == pytest.approx(1.3 * 1.5 + 1.0)
    assert found.coordinator_cpu_per_1000_tokens == pytest.approx(1.0)


def test_every_promise_can_be_broken():
    measured = make_measured(
        (make_turn(6.0, 4.0),) * 3, (make_turn(5.0, 3.0),) * 3, ready=2.96, workers=136
    )

    found = voice_report.conclude(measured)

    assert [item.is_met for item in found.criteria] == [False] * 5
    assert "MISS" in voice_report.lines(measured, found)


def test_what_disturbs_a_run_is_noted():
    disturbed = make_turn(5.0, 2.0, idle=0.5, others=0.7)

    found = voice_report.conclude(make_measured((disturbed,), (make_turn(5.0, 2.0),)))

    assert found.notes == (
        "the side that had nothing to do used up to 0.50 cores",
        "other processes used up to 0.70 cores; turns disturbed: 1",
    )
