import pytest

from benchmarks.judging.quiet import Core, Preflight, Process, busiest, core_shares, quieter

pytestmark = pytest.mark.unit

BEFORE = """\
cpu  0 0 0 0 0 0 0 0 0 0
cpu0 100 0 0 1000 0 0 0 0 0 0
cpu1 100 0 0 1000 0 0 0 0 0 0
intr 1 2 3
"""
AFTER = """\
cpu  0 0 0 0 0 0 0 0 0 0
cpu0 150 0 25 1020 5 0 0 0 50 0
cpu1 100 0 0 1090 0 0 0 10 0 0
intr 1 2 3
"""


def test_shares_of_each_core_come_from_two_readings():
    shares = core_shares(BEFORE, AFTER, [0, 1])

    assert shares == {0: Core(0.75, 0.0), 1: Core(0.0, 0.1)}


def test_only_the_cores_that_are_used_count():
    assert core_shares(BEFORE, AFTER, [1]).keys() == {1}


def test_a_blip_in_one_window_is_no_busy_core():
    windows = [{0: Core(0.9, 0.0)}, {0: Core(0.1, 0.2)}]

    assert quieter(windows) == {0: Core(0.1, 0.0)}


def test_the_busiest_processes_are_named_also_those_that_have_just_begun():
    before = {1: ("init", 5.0), 2: ("make", 1.0)}
    after = {1: ("init", 5.0), 2: ("make", 2.0), 3: ("cc", 1.5)}

    assert busiest(before, after, 2.0) == (Process(3, "cc", 0.75), Process(2, "make", 0.5))


def test_a_quiet_machine_has_no_reason_whatever_its_load_average_says():
    found = Preflight({0: Core(0.02, 0.0), 1: Core(0.1, 0.01)}, (), load=7.0)

    assert found.is_quiet
    assert found.reason == ""


def test_a_busy_core_is_named_with_who_is_busy():
    found = Preflight({0: Core(0.1, 0.0), 1: Core(0.9, 0.0)}, (Process(7, "make", 0.8),), 0.0)

    assert not found.is_quiet
    assert found.reason == "core 1 is busy for 90%; busiest: make (7) 0.80"


def test_a_busy_core_without_a_process_is_somebody_outside():
    found = Preflight({0: Core(0.9, 0.0)}, (), 0.0)

    assert "look outside this container" in found.reason


def test_stolen_time_is_no_quiet():
    found = Preflight({0: Core(0.0, 0.2)}, (), 0.0)

    assert found.reason == "the machine below takes away 20% of a core"
