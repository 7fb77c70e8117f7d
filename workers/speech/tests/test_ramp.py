"""The ramp of a voice: pieces as long as what was spoken before allows."""

import pytest

from stagewire.playback import Playback, playback_gaps
from worker_speech.ramp import MARGIN_SECONDS, Speed, cut, most_characters

pytestmark = pytest.mark.unit

CHARACTERS_PER_SECOND = 15.0
CLAUSES = [
    "In the mountains, where the snow melts in spring, a river begins as a small stream,",
    "which gathers water from every valley on its way, and soon it is wide enough for boats;",
    "then it slows down, because the land is flat, and it reaches the sea after many days.",
]
TEXT = " ".join(CLAUSES)


def speed(real_time_factor: float) -> Speed:
    return Speed(CHARACTERS_PER_SECOND, 1.0, real_time_factor)


@pytest.mark.parametrize("most", [0, 5, 20, 60, 100, 1000, None])
def test_pieces_are_the_text_whatever_their_length(most):
    pieces, rest = [], TEXT
    while rest:
        piece, rest = cut(rest, most)
        pieces.append(piece)

    assert "".join(pieces) == TEXT
    assert all(piece.rstrip()[-1] in ",;." for piece in pieces)


def test_a_piece_is_the_longest_that_is_allowed():
    assert cut(CLAUSES[0], 60)[0] == "In the mountains, where the snow melts in spring, "
    assert cut(CLAUSES[0], 20)[0] == "In the mountains, "
    assert cut(CLAUSES[0], 1)[0] == "In the mountains, "


@pytest.mark.parametrize(
    "text",
    [
        "No clause ends anywhere in here.",
        "Well, that is it.",
        "It is 10,000,000 at 10:30 hours",
        "",
    ],
)
def test_what_would_sound_torn_stays_whole(text):
    assert cut(text, 5) == (text, "")


def test_with_nothing_left_a_piece_is_as_long_as_the_first_may_be():
    assert most_characters(speed(0.5), 0, 2.0) == 30


def test_what_is_left_allows_as_much_as_is_made_in_that_time():
    assert most_characters(speed(0.5), 4 + MARGIN_SECONDS, 2.0) == 120
    assert most_characters(speed(0.1), 4 + MARGIN_SECONDS, 2.0) == 600


def test_a_voice_that_is_too_slow_speaks_whole_texts():
    assert most_characters(speed(1.0), 0, 2.0) is None


def test_a_speed_is_measured_and_what_was_assumed_fades():
    measured = Speed()
    for _ in range(40):
        measured = measured.after(characters=60, audio_seconds=4.0, busy_seconds=0.4)

    assert measured.real_time_factor == pytest.approx(0.1, rel=0.01)
    assert measured.characters_per_second == pytest.approx(15, rel=0.01)


def test_a_machine_that_gets_slower_is_noticed_within_a_few_pieces():
    measured = speed(0.1)
    for _ in range(5):
        measured = measured.after(characters=60, audio_seconds=4.0, busy_seconds=2.0)

    assert measured.real_time_factor > 0.4


def arrivals(texts, real_time_factor, first_seconds):
    """Speaks texts on a clock of its own; returns when each piece was there, and its length."""
    now, measured, playback, found = 0.0, Speed(), Playback(1.0), []
    for text in texts:
        rest = text
        while rest:
            most = most_characters(measured, playback.slack(now), first_seconds)
            piece, rest = cut(rest, most if first_seconds else None)
            length = len(piece) / CHARACTERS_PER_SECOND
            now += length * real_time_factor
            measured = measured.after(len(piece), length, length * real_time_factor)
            playback.add(length, now)
            found.append((now, length))
    return found


@pytest.mark.parametrize("real_time_factor", [0.1, 0.3, 0.5, 0.6])
def test_pieces_grow_and_the_listener_hears_no_gap(real_time_factor):
    texts = ["Rivers begin in the mountains, where the snow melts in spring.", TEXT, TEXT, TEXT]
    ramped = arrivals(texts, real_time_factor, first_seconds=2.0)

    assert playback_gaps(ramped, 1.0) == ()
    lengths = [length for _, length in ramped]
    assert lengths[0] == min(lengths) < 3
    assert max(lengths) >= 3 * lengths[0]
    assert ramped[0][0] < arrivals(texts, real_time_factor, first_seconds=0)[0][0]


def test_whole_texts_leave_a_gap_where_the_ramp_leaves_none():
    texts = ["Rivers begin in the mountains.", TEXT]

    assert playback_gaps(arrivals(texts, 0.3, first_seconds=0), 1.0)
    assert not playback_gaps(arrivals(texts, 0.3, first_seconds=2.0), 1.0)
