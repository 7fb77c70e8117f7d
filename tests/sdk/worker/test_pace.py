"""Who computes next: by what listeners have ahead, and nobody waits for ever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.playback import playback_gaps
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.pace import (
    MARGIN_SECONDS,
    PATIENCE_SECONDS,
    Claim,
    Steps,
    gives_way,
    next_claim,
    played_elements,
)

pytestmark = pytest.mark.unit

SHORT = 0.1


def test_the_least_slack_comes_first():
    assert next_claim([Claim(3, 1), Claim(1, 0), Claim(2, 2)]) == 1


def test_among_equals_the_longest_wait_comes_first():
    assert next_claim([Claim(0, 1), Claim(0, 2), Claim(0, 0.5)]) == 1


def test_one_that_waited_too_long_comes_before_all():
    assert next_claim([Claim(0, 1), Claim(9, PATIENCE_SECONDS), Claim(8, 2)]) == 1


def test_nobody_gives_way_to_nobody():
    assert not gives_way(100, SHORT, [])


def test_a_holder_far_ahead_gives_way_to_one_that_has_less():
    assert gives_way(5, SHORT, [Claim(0, 0)])
    assert gives_way(5, SHORT, [Claim(6, 0), Claim(4.9, 0)])


def test_a_holder_keeps_its_turn_from_those_that_have_more():
    assert not gives_way(5, SHORT, [Claim(5, 0), Claim(6, 1)])


def test_a_holder_whose_listener_would_run_dry_keeps_its_turn():
    assert not gives_way(MARGIN_SECONDS, 0, [Claim(0, 1)])
    assert not gives_way(2, 2, [Claim(0, 1)])
    assert not gives_way(0, 0, [Claim(0, PATIENCE_SECONDS / 2)])


def test_a_wait_that_is_too_long_ends_even_so():
    assert gives_way(0, 0, [Claim(3, PATIENCE_SECONDS)])


def test_only_the_last_steps_count():
    steps = Steps()
    assert steps.longest_seconds == 0
    steps.note(9)
    for _ in range(8):
        steps.note(1)
    assert steps.longest_seconds == 1


def test_what_is_played_of_an_item_is_its_varying_extent_or_the_item_itself():
    audio = Port("a", DataType.INT16, (Dimension("samples", 100),), is_stream=True)
    frame = Port("f", DataType.UINT8, (Dimension("", 4), Dimension("w", 9)), is_stream=True)
    word = Port("t", DataType.UTF8, (), is_stream=True)

    assert played_elements(audio, np.zeros(30, np.int16)) == 30
    assert played_elements(frame, np.zeros((4, 5), np.uint8)) == 1
    assert played_elements(word, "word") == 1


class Speaker:
    """A request of a made-up voice: pieces of audio that take a share of their length to make."""

    def __init__(self, pieces, asked_at):
        self.pieces = list(pieces)
        self.asked_at = asked_at
        self.arrivals = []

    def slack(self, now):
        ends = None
        for moment, length in self.arrivals:
            ends = length + (moment if ends is None else max(ends, moment))
        return 0 if ends is None else max(0, ends - now)


def simulate(speakers, real_time_factor):
    """Runs the decisions on a clock of their own, as a lane with room for all does."""
    now, holder, steps = 0.0, None, Steps()
    asked = {id(speaker): speaker.asked_at for speaker in speakers}
    longest_wait = 0.0
    while any(speaker.pieces for speaker in speakers):
        waiting = [s for s in speakers if s.pieces and s is not holder and asked[id(s)] <= now]
        claims = [Claim(s.slack(now), now - asked[id(s)]) for s in waiting]
        if holder is not None and holder.pieces:
            if gives_way(holder.slack(now), steps.longest_seconds, claims):
                asked[id(holder)] = now
                holder = None
        else:
            holder = None
        if holder is None:
            if not waiting:
                now = min(asked[id(s)] for s in speakers if s.pieces)
                continue
            holder = waiting[next_claim(claims)]
            longest_wait = max(longest_wait, now - asked[id(holder)])
        length = holder.pieces.pop(0)
        now += length * real_time_factor
        steps.note(length * real_time_factor)
        holder.arrivals.append((now, length))
    return longest_wait


def gaps(speaker):
    return playback_gaps(((moment, length) for moment, length in speaker.arrivals), 1.0)


def test_two_requests_at_once_play_without_a_gap_where_the_arithmetic_allows():
    speakers = [Speaker([1, 2] + [4] * 10, 0.0), Speaker([1, 2] + [4] * 10, 0.0)]

    simulate(speakers, real_time_factor=0.2)

    for speaker in speakers:
        assert gaps(speaker) == ()
    first, second = (s.arrivals[0][0] for s in speakers)
    assert abs(first - second) < 1


def test_first_in_first_out_makes_the_second_wait_and_the_turn_by_slack_does_not():
    speakers = [Speaker([4] * 10, 0.0), Speaker([4] * 10, 0.5)]

    simulate(speakers, real_time_factor=0.1)

    in_order = 0.1 * 4 * 11
    assert speakers[1].arrivals[0][0] < in_order / 3
    assert speakers[0].arrivals[-1][0] > speakers[1].arrivals[1][0]


def test_a_machine_that_is_too_slow_for_two_lets_the_first_play_on_for_a_while():
    speakers = [Speaker([1] * 40, 0.0), Speaker([1] * 40, 0.0)]

    longest_wait = simulate(speakers, real_time_factor=0.9)

    assert longest_wait < PATIENCE_SECONDS + 1
    assert all(len(s.arrivals) == 40 for s in speakers)


@given(
    st.lists(
        st.tuples(st.lists(st.floats(0.2, 5), min_size=1, max_size=12), st.floats(0, 20)),
        min_size=1,
        max_size=5,
    ),
    st.floats(0.02, 3),
)
def test_everybody_is_served_and_nobody_waits_much_longer_than_patience_allows(requests, factor):
    speakers = [Speaker(pieces, asked_at) for pieces, asked_at in requests]
    count = [len(speaker.pieces) for speaker in speakers]

    longest_wait = simulate(speakers, factor)

    assert [len(speaker.arrivals) for speaker in speakers] == count
    step = factor * 5
    assert longest_wait <= PATIENCE_SECONDS + len(speakers) * (step + 1e-9)
