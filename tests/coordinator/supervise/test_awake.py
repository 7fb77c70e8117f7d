"""Time limits that a machine does not use up while it sleeps."""

import asyncio

import pytest

from coordinator.supervise.awake import AwakeClock, first_of, sleep_awake

pytestmark = pytest.mark.unit


def read_all(clock, *moments):
    return [clock.read(moment) for moment in moments]


def test_the_time_awake_is_the_time_between_looks():
    assert read_all(AwakeClock(1.0), 50.0, 50.25, 51.0) == [0.0, 0.25, 1.0]


@pytest.mark.parametrize("slept", [1.5, 600.0, 1e9])
def test_a_sleep_of_any_length_counts_as_one_step(slept):
    assert read_all(AwakeClock(1.0), 0.0, 0.5, 0.5 + slept) == [0.0, 0.5, 1.5]


def test_a_clock_that_goes_back_stands_still():
    assert read_all(AwakeClock(1.0), 10.0, 9.0, 9.5) == [0.0, 0.0, 0.5]


async def test_a_limit_ends_a_wait():
    never = asyncio.get_running_loop().create_future()

    await first_of(never, limit_seconds=0.01)

    assert not never.done()


async def test_what_comes_first_ends_a_wait_and_its_limit():
    before = asyncio.all_tasks()
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)

    await first_of(done, limit_seconds=3600)

    await asyncio.wait([asyncio.create_task(sleep_awake(0))])
    assert asyncio.all_tasks() == before
