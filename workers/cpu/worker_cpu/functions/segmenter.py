"""Where speech begins and ends, decided from the probability of voice in each window of audio."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from stagewire.tensor import Array


@dataclass(frozen=True, slots=True)
class SegmenterSettings:
    """Rules of a segmenter; durations are in windows."""

    threshold: float
    """Probability from which a window is speech."""
    release_threshold: float
    """Probability below which a window of a segment counts as silence."""
    min_speech: int
    """Shorter speech is dropped."""
    min_silence: int
    """Silence that closes a segment; shorter pauses stay inside it."""
    padding: int
    """Windows that are kept before and after speech."""
    max_segment: int
    """Longest segment; longer speech is cut where it is quietest."""


class Segmenter:
    """Collects windows into segments of speech."""

    def __init__(self, settings: SegmenterSettings) -> None:
        self._settings = settings
        self._before: deque[Array] = deque(maxlen=settings.padding)
        """Windows before speech that no segment has taken."""
        self._windows: list[Array] = []
        """The open segment; empty between segments."""
        self._probabilities: list[float] = []
        self._padded = 0
        self._silence = 0
        self._continues = False
        """Whether the open segment is the rest of one that was cut."""

    def push(self, window: Array, probability: float) -> Array | None:
        """Takes the next window; returns a segment when one closes."""
        settings = self._settings
        if not self._windows:
            if probability < settings.threshold:
                self._before.append(window)
                return None
            self._open()
        self._windows.append(window)
        self._probabilities.append(probability)
        if probability >= settings.threshold:
            self._silence = 0
        elif probability < settings.release_threshold or self._silence:
            self._silence += 1
            if self._silence >= settings.min_silence:
                return self._close()
        if len(self._windows) >= settings.max_segment:
            return self._cut()
        return None

    def finish(self) -> Array | None:
        """Closes the segment that is still open at the end of the audio."""
        return self._close() if self._windows else None

    def _open(self) -> None:
        self._windows = list(self._before)
        self._probabilities = [0.0] * len(self._windows)
        self._padded = len(self._windows)
        self._before.clear()
        self._silence = 0
        self._continues = False

    def _close(self) -> Array | None:
        end = len(self._windows) - self._silence
        is_kept = self._continues or end - self._padded >= self._settings.min_speech
        taken = end + min(self._settings.padding, self._silence)
        segment = np.concatenate(self._windows[:taken]) if is_kept else None
        self._before.extend(self._windows[taken if is_kept else 0 :])
        self._windows = []
        self._probabilities = []
        return segment

    def _cut(self) -> Array:
        middle = len(self._probabilities) // 2
        cut = middle + int(np.argmin(self._probabilities[middle:])) + 1
        segment = np.concatenate(self._windows[:cut])
        del self._windows[:cut], self._probabilities[:cut]
        self._padded = 0
        self._silence = min(self._silence, len(self._windows))
        self._continues = True
        return segment
