"""Samples as a pipeline takes them, from whatever was read: one channel, finite, bounded."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.errors import MediaInvalidError
from stagewire.limits import AUDIO_CHANNELS, AUDIO_RATE, AUDIO_SAMPLES
from stagewire.tensor import Array

TO_WAV: Final = "for example with `ffmpeg -i IN -c:a pcm_s16le OUT.wav`"
BLOCK_SAMPLES: Final = 1 << 18
"""Samples of all channels that are decoded at once."""
_LARGEST: Final = 64.0
"""Recorders of 32-bit floats go beyond 1 on purpose, but not by 36 dB."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Samples of one channel, and how many of them there are in a second."""

    samples: Array
    rate: int


def damaged(name: str, problem: str) -> MediaInvalidError:
    """Returns the refusal of a file whose content cannot be."""
    return MediaInvalidError(f"{name} {problem}; save it again as WAV with 16-bit PCM, {TO_WAV}")


def check_form(channels: int, rate: int, name: str) -> None:
    """Checks what a header says before anything is made of it.

    Raises:
        MediaInvalidError: no recording has such a form.
    """
    if not 0 < channels <= AUDIO_CHANNELS:
        raise damaged(name, f"says that it has {channels} channels, not 1 to {AUDIO_CHANNELS}")
    if not 0 < rate <= AUDIO_RATE:
        raise damaged(name, f"says that its rate is {rate}, not 1 to {AUDIO_RATE}")


def check_length(frames: int, name: str) -> None:
    """Checks that there are samples, and not too many.

    Raises:
        MediaInvalidError: there are none, or more than are read.
    """
    if frames == 0:
        raise damaged(name, "has no samples")
    if frames > AUDIO_SAMPLES:
        raise MediaInvalidError(f"{name} has over {AUDIO_SAMPLES} samples; cut it into parts")


def mixed(blocks: Iterable[Array], rate: int, name: str) -> Wave:
    """Returns blocks of float32 [samples, channels] as one row, the mean of its channels.

    Raises:
        MediaInvalidError: there are no samples, too many, or some that are no sound.
    """
    rows: list[Array] = []
    count = 0
    # Sums of huge numbers become infinite, and are refused as such.
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks:
            count += len(block)
            check_length(count, name)
            row = block[:, 0].copy() if block.shape[1] == 1 else block.mean(axis=1, dtype="f4")
            _check_values(row, name)
            rows.append(row)
    check_length(count, name)
    return Wave(rows[0] if len(rows) == 1 else np.concatenate(rows), rate)


def _check_values(row: Array, name: str) -> None:
    largest = float(np.abs(row).max(initial=0))
    if not np.isfinite(largest):
        raise damaged(name, "has samples that are not a number or infinite")
    if largest > _LARGEST:
        raise MediaInvalidError(
            f"{name} has samples as large as {largest:.6g}, and floats in a file lie between -1"
            " and 1; divide them by the largest that they may be, for example 32768"
        )
