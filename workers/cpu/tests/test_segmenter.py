"""Where segments of speech begin and end."""

import numpy as np
import pytest

from worker_cpu.functions.segmenter import Segmenter, SegmenterSettings

pytestmark = pytest.mark.unit


def segments(pattern: str, **changes: float) -> list[str]:
    """Runs a pattern of windows: # speech, ~ between the thresholds, . silence."""
    rules = {
        "threshold": 0.5,
        "release_threshold": 0.35,
        "min_speech": 2,
        "min_silence": 3,
        "padding": 1,
        "max_segment": 100,
    }
    segmenter = Segmenter(SegmenterSettings(**{**rules, **changes}))
    probabilities = {"#": 0.9, "~": 0.4, ".": 0.1}
    found = [
        segmenter.push(np.array([index], np.float32), probabilities[sign])
        for index, sign in enumerate(pattern)
    ]
    found.append(segmenter.finish())
    return [
        "".join(pattern[int(index)] for index in segment)
        for segment in found
        if segment is not None
    ]


def test_speech_is_padded_on_both_sides():
    assert segments("....####....") == [".####."]


def test_two_utterances_are_two_segments():
    assert segments("..###....###....") == [".###.", ".###."]


def test_a_short_pause_does_not_cut():
    assert segments("..###..###...") == [".###..###."]


def test_a_click_is_dropped():
    assert segments("...#.......") == []


def test_between_the_thresholds_speech_goes_on_but_does_not_begin():
    assert segments("..~~~....") == []
    assert segments("..##~~~~##....") == [".##~~~~##."]


def test_speech_that_runs_to_the_end_is_kept():
    assert segments("..####") == [".####"]


def test_silence_gives_nothing():
    assert segments("........") == []
    assert segments("") == []


def test_a_segment_leaves_as_soon_as_it_is_closed():
    segmenter = Segmenter(SegmenterSettings(0.5, 0.35, 1, 2, 0, 100))
    window = np.zeros(1, np.float32)
    assert segmenter.push(window, 0.9) is None
    assert segmenter.push(window, 0.1) is None
    assert segmenter.push(window, 0.1) is not None


def test_speech_that_is_too_long_is_cut_where_it_is_quietest():
    assert segments("######~###", max_segment=10, padding=0) == ["######~", "###"]


def test_no_segment_is_longer_than_allowed_and_none_of_the_speech_is_lost():
    found = segments("#" * 95, max_segment=10)
    assert max(map(len, found)) <= 10
    assert sum(map(len, found)) == 95


def test_the_short_rest_of_a_cut_is_kept():
    assert sum(map(len, segments("###########....", max_segment=10, padding=0, min_speech=5))) == 11


def test_audio_before_a_dropped_click_still_pads_what_follows():
    assert segments("...#...###....", padding=4, min_speech=2) == ["#...###..."]
