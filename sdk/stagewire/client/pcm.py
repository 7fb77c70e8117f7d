"""Samples that are stored as they are, without compression: bytes to float32 between -1 and 1."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from stagewire.tensor import Array

PCM: Final = 0x0001
FLOAT: Final = 0x0003
A_LAW: Final = 0x0006
MU_LAW: Final = 0x0007
CODINGS: Final = frozenset(
    {(PCM, 8), (PCM, 16), (PCM, 24), (PCM, 32), (FLOAT, 32), (FLOAT, 64), (A_LAW, 8), (MU_LAW, 8)}
)
"""What is read, as tag and bits of the space that a sample takes."""


@dataclass(frozen=True, slots=True)
class Coding:
    """How the samples of a file are stored."""

    tag: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of every channel."""
        return self.channels * self.bits // 8


def decoded(raw: memoryview, coding: Coding) -> Array:
    """Returns whole frames as float32 [samples, channels]."""
    return _scaled(raw, coding).reshape(-1, coding.channels)


def _scaled(raw: memoryview, coding: Coding) -> Array:
    if coding.tag == FLOAT:
        return np.frombuffer(raw, f"<f{coding.bits // 8}").astype(np.float32)
    if coding.tag in _TABLES:
        return _TABLES[coding.tag][np.frombuffer(raw, np.uint8)]
    if coding.bits == 8:  # noqa: PLR2004 - the one size that WAV stores without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
    if coding.bits == 24:  # noqa: PLR2004 - the one size that numpy has no type for
        wide = np.zeros((raw.nbytes // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        numbers: Array = wide.reshape(-1).view("<i4")
        return numbers.astype(np.float32) / np.float32(1 << 31)
    numbers = np.frombuffer(raw, f"<i{coding.bits // 8}")
    return numbers.astype(np.float32) / np.float32(1 << (coding.bits - 1))


def _telephone(code: int, mask: int) -> tuple[int, int, int]:
    """Returns sign, segment and step of a byte of G.711."""
    code ^= mask
    return (1 if code & 0x80 else -1), code >> 4 & 7, code & 15


def _a_law(code: int) -> float:
    sign, segment, step = _telephone(code, 0x55)
    size = (step << 4) + 8
    return sign * (size if segment == 0 else size + 0x100 << segment - 1) / 32768


def _mu_law(code: int) -> float:
    sign, segment, step = _telephone(code, 0x7F)
    return sign * (((step << 3) + 0x84 << segment) - 0x84) / 32768


_TABLES: Final = {
    A_LAW: np.array([_a_law(code) for code in range(256)], np.float32),
    MU_LAW: np.array([_mu_law(code) for code in range(256)], np.float32),
}
