"""How much of a window is encoded."""

import numpy as np
import pytest

from worker_cpu.fitted_window import SHORTEST_FRAMES, fit_window, fitted_frames
from worker_cpu.whisper import WhisperSettings

pytestmark = pytest.mark.unit

WINDOW = 3_000


@pytest.mark.parametrize(
    ("seconds", "frames"),
    [(0, 1_000), (1, 1_000), (9, 1_000), (9.01, 1_002), (20, 2_100), (28.99, 3_000), (30, 3_000)],
)
def test_short_audio_gets_ten_seconds_and_long_audio_what_it_needs(seconds, frames):
    assert fitted_frames(int(seconds * 16_000), WINDOW) == frames


def test_the_number_of_frames_is_even_and_within_the_window():
    counts = {fitted_frames(samples, WINDOW) for samples in range(0, 500_000, 77)}
    assert all(count % 2 == 0 and SHORTEST_FRAMES <= count <= WINDOW for count in counts)


def test_the_model_encodes_what_is_left():
    class Model:
        def encode(self, features):
            return features.shape, features.flags.c_contiguous

    model = fit_window(Model)()
    model.sample_count = 16_000 * 15

    assert model.encode(np.zeros((1, 80, WINDOW), np.float32)) == ((1, 80, 1_600), True)


@pytest.mark.parametrize(
    ("window", "samples", "is_fitted"),
    [
        ("auto", 16_000, True),
        ("auto", 16_001, False),
        ("full", 100, False),
        ("fitted", 400_000, True),
    ],
)
def test_only_short_items_are_fitted_unasked(window, samples, is_fitted):
    settings = WhisperSettings("en", "transcribe", 1, "int8", "", window)
    assert settings.is_fitted(samples) is is_fitted
