"""A hang is told from slow work and from a sleeping machine by progress alone."""

import pytest

from coordinator.facts.ids import StageId
from coordinator.supervise.awake import AwakeClock
from coordinator.supervise.watchdog import Lane, Watchdog

pytestmark = pytest.mark.unit

ONE = StageId("one")


def watchdog(heartbeat=10.0, hang=5.0):
    return Watchdog(heartbeat, {ONE: hang})


def beats(dog, *marks):
    for now, progress, is_busy in marks:
        dog.beat([Lane(ONE, progress, is_busy)], now)


def test_the_first_heartbeat_is_waited_for_no_longer_than_the_others():
    assert watchdog().complaint(10) is None
    assert "no heartbeat for 10.1 s" in watchdog().complaint(10.1)


def test_silence_is_a_hang():
    dog = watchdog()
    beats(dog, (0, 1, False))

    assert dog.complaint(10) is None
    assert "no heartbeat for 10.1 s" in dog.complaint(10.1)


def test_a_late_heartbeat_is_no_hang_of_a_lane():
    dog = watchdog()
    beats(dog, (0, 1, True), (4, 1, True))

    assert dog.complaint(9) is None


def test_a_busy_lane_without_a_step_is_a_hang():
    dog = watchdog()
    beats(dog, (0, 1, True), (3, 1, True), (5.5, 1, True))

    assert "'one' made no step for 5.5 s" in dog.complaint(5.5)


@pytest.mark.parametrize(
    "later", [(5.5, 2, True), (5.5, 1, False)], ids=["it made a step", "it waits"]
)
def test_a_lane_that_goes_on_or_waits_does_not_hang(later):
    dog = watchdog()
    beats(dog, (0, 1, True), later)

    assert dog.complaint(5.6) is None


@pytest.mark.parametrize("slept", [3.0, 6.0, 600.0])
def test_a_machine_that_slept_for_any_time_is_no_hang(slept):
    dog, clock = watchdog(heartbeat=2.0, hang=2.0), AwakeClock(longest_step_seconds=1.0)
    dog.beat([Lane(ONE, 1, True)], clock.read(100.0))
    now = clock.read(100.5)
    assert dog.complaint(now) is None

    now = clock.read(100.5 + slept)

    # A beat that says the same as before it slept, and then silence, which is judged as ever.
    dog.beat([Lane(ONE, 1, True)], now)
    assert dog.complaint(now) is None
    assert dog.complaint(clock.read(101.0 + slept)) is None
    for step in range(4):
        now = clock.read(101.5 + slept + step / 2)
    assert "no heartbeat" in dog.complaint(now)


def test_a_stage_that_the_plan_does_not_name_has_no_limit():
    dog = watchdog()
    dog.beat([Lane(StageId("other"), 1, True)], 0)
    dog.beat([Lane(StageId("other"), 1, True)], 8)

    assert dog.complaint(9) is None


def test_a_thread_that_hangs_does_not_hide_behind_its_siblings():
    dog = watchdog()
    for now in (0, 2, 4, 6):
        dog.beat([Lane(ONE, 1, True, 0), Lane(ONE, now, True, 1)], now)

    assert "'one' made no step for 6.0 s" in dog.complaint(6)
