"""What a listener has ahead, and the gaps that a listener hears."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.playback import Gap, Playback, playback_gaps

pytestmark = pytest.mark.unit


def test_nothing_is_ahead_before_the_first_item():
    assert Playback(10).slack(5.0) == 0


def test_what_is_ahead_grows_by_items_and_shrinks_with_time():
    playback = Playback(10)
    playback.add(20, 100.0)
    assert playback.slack(100.5) == 1.5
    playback.add(10, 100.5)
    assert playback.slack(102.5) == 0.5


def test_a_listener_that_had_nothing_goes_on_with_the_next_item():
    playback = Playback(10)
    assert playback.add(10, 0.0) is None
    assert playback.slack(7.0) == 0
    assert playback.add(10, 7.0) == Gap(began=1.0, seconds=6.0)
    assert playback.slack(7.5) == 0.5


def test_gaps_are_found_between_arrivals():
    arrivals = [(3.0, 100), (3.5, 100), (6.0, 50), (6.1, 50)]

    assert playback_gaps(arrivals, 100) == (Gap(began=5.0, seconds=1.0),)


def test_items_that_come_in_time_leave_no_gap():
    assert playback_gaps([(0.0, 10), (0.9, 10), (1.9, 10)], 10) == ()
    assert playback_gaps([], 10) == ()
    assert playback_gaps([(4.0, 1)], 10) == ()


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 1000)), min_size=1, max_size=30),
    st.floats(1, 1000),
)
def test_playing_takes_what_was_sent_and_the_gaps_and_nothing_else(steps, per_second):
    now, arrivals = 0.0, []
    for wait, count in steps:
        now += wait
        arrivals.append((now, count))
    playback = Playback(per_second)
    silent = sum(gap.seconds for gap in playback_gaps(arrivals, per_second))
    for moment, count in arrivals:
        playback.add(count, moment)

    ends = arrivals[0][0] + sum(count for _, count in arrivals) / per_second + silent
    assert playback.slack(now) == pytest.approx(max(0, ends - now), abs=1e-6)
