"""The ramp of an answer: its first pieces are short, and each is as long as the one before allows.

With `r` the real-time factor of the voice (seconds of computing for a second of audio), a piece of
`d` seconds is there `r * d` after it was begun. Whoever listens has `s` seconds left at that moment
and hears no gap as long as

    r * d <= s - m          hence          d <= (s - m) / r

with a margin `m` for the way to the listener. The piece itself adds `d` and its making takes
`r * d`, so what is left afterwards is `s + (1 - r) * d`: below `r = 1` that grows from piece to
piece, and the next piece may be up to `1 / r` times as long, until texts are spoken whole. At
`r >= 1` no ramp builds up a lead; texts are spoken whole then, so that gaps fall between sentences.

`r` and the speed of the voice are measured by every piece that is spoken, beginning with the
example that proves the stage; before that stated values hold, which are slow on purpose.
"""

import re
from dataclasses import dataclass
from typing import Final

MARGIN_SECONDS: Final = 0.2
_KEPT: Final = 0.8
"""Weight of all earlier pieces beside the latest: what counts is the machine as it is now."""
_SHORTEST_CHARACTERS: Final = 10
"""A shorter part sounds torn off."""
_CLAUSE_END: Final = re.compile(
    r"[,;:\u2014\u2013][\"'\u2019\u201d)\]]*\s+|[\uff0c\u3001\uff1b\uff1a]\s*"
)


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a voice is: sums over the last pieces, later ones with more weight."""

    characters: float = 15.0
    audio_seconds: float = 1.0
    busy_seconds: float = 0.5

    def after(self, characters: int, audio_seconds: float, busy_seconds: float) -> "Speed":
        """Returns the speed once another piece is counted."""
        return Speed(
            self.characters * _KEPT + characters,
            self.audio_seconds * _KEPT + audio_seconds,
            self.busy_seconds * _KEPT + busy_seconds,
        )

    @property
    def real_time_factor(self) -> float:
        """Seconds of computing for a second of audio."""
        return self.busy_seconds / self.audio_seconds

    @property
    def characters_per_second(self) -> float:
        """Characters of a second of audio."""
        return self.characters / self.audio_seconds


def most_characters(speed: Speed, slack_seconds: float, first_seconds: float) -> int | None:
    """Returns the longest piece that leaves no gap; None for any.

    Args:
        speed: How fast the voice is.
        slack_seconds: What the listener has left; 0 before the first piece and in a gap.
        first_seconds: The longest piece, in seconds of audio, where nothing is left.
    """
    if speed.real_time_factor >= 1:
        return None
    allowed = (slack_seconds - MARGIN_SECONDS) / speed.real_time_factor
    return int(max(first_seconds, allowed) * speed.characters_per_second)


def cut(text: str, most: int | None) -> tuple[str, str]:
    """Returns the first piece of a text and the rest of it; together they are the text.

    A piece ends with a clause: the last one that is short enough, or else the first. A text without
    clauses stays whole, because a voice stumbles where it is cut elsewhere.
    """
    if most is None or len(text) <= most:
        return text, ""
    ends = [
        match.end()
        for match in _CLAUSE_END.finditer(text)
        if len(text[: match.end()].strip()) >= _SHORTEST_CHARACTERS
        and len(text[match.end() :].strip()) >= _SHORTEST_CHARACTERS
    ]
    if not ends:
        return text, ""
    end = max((end for end in ends if end <= most), default=ends[0])
    return text[:end], text[end:]
