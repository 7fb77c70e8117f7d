"""Frames of MPEG audio (MP3): walked from header to header before a decoder sees them.

A decoder searches for the next frame when one is damaged, and plays on; what it left out, or how
much is missing at the end, it does not say.
"""

import re
import struct
from dataclasses import dataclass
from typing import Final

from stagewire.client.sound import damaged

_HEADER_BYTES: Final = 4
_FRAMES_IN_A_ROW: Final = 2
"""So many headers, each where the last one says, are no accident."""
_MOST_TRIES: Final = 10_000
"""Beginnings of frames that are tried in what follows the last one."""
_TAG_BYTES: Final = 10
_BEGINNING: Final = re.compile(rb"\xff[\xe2-\xff][\x10-\xef]")
_ZEROS: Final = re.compile(rb"\0*")
_MPEG_1, _MPEG_2 = 3, 2
_LAYER_1, _LAYER_3 = 3, 1
_MONO: Final = 3
_BOTH: Final = 3
_RATES: Final = (44_100, 48_000, 32_000)
_KILOBITS: Final = {
    # By whether it is version 1, and by layer as the header has it: 3, 2, 1.
    (True, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


@dataclass(frozen=True, slots=True)
class _Frame:
    form: tuple[int, int, int, bool]
    """What stays the same from frame to frame: version, layer, rate, whether mono."""
    size: int
    samples: int


def after_tag(raw: bytes) -> int:
    """Returns where the content begins after the ID3 tags at the start of a file."""
    position = 0
    while raw.startswith(b"ID3", position) and position + _TAG_BYTES <= len(raw):
        flags, *digits = raw[position + 5 : position + _TAG_BYTES]
        size = 0
        for digit in digits:
            size = size << 7 | digit & 0x7F
        position += _TAG_BYTES + size + (_TAG_BYTES if flags & 0x10 else 0)
    return position


def frames_of(raw: bytes, name: str) -> tuple[bytes, int]:
    """Returns the frames of what follows the tags of a file, and their samples together.

    A last frame that is not whole is left out, as players do.

    Raises:
        MediaInvalidError: there are none, or they are damaged, cut off, or of several recordings.
    """
    padding = _ZEROS.match(raw)
    start = padding.end() if padding else len(raw)
    first = _frame(raw, start)
    if first is None or start + first.size > len(raw):
        raise damaged(name, "is MP3 audio that is cut off or damaged at its beginning")
    position, count = start, 0
    while position + _HEADER_BYTES <= len(raw):
        frame = _frame(raw, position)
        if frame is None or frame.form != first.form or position + frame.size > len(raw):
            break
        position += frame.size
        count += 1
    if _goes_on(raw, position):
        raise damaged(
            name, f"is MP3 audio that is damaged, or has another recording, at byte {position}"
        )
    stated, stated_bytes = _stated(raw[start : start + first.size], first)
    if stated is not None:
        # The frame that says so holds no sound; some encoders count it all the same.
        count -= 1
        is_short = count < stated and stated_bytes > position - start
        if abs(count - stated) > 1 or is_short:
            raise damaged(name, f"is MP3 audio with {count} frames, and says that it has {stated}")
    return raw[start:position], count * first.samples


def _frame(raw: bytes, position: int) -> "_Frame | None":
    header = raw[position : position + _HEADER_BYTES]
    if len(header) < _HEADER_BYTES or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:  # noqa: PLR2004
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    size_code, rate_code, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    # Version 1, layer 0, rate 3 and size 15 are reserved; size 0 leaves the size open.
    if version == 1 or layer == 0 or rate_code == 3 or size_code in (0, 15):  # noqa: PLR2004
        return None
    is_first = version == _MPEG_1
    rate = _RATES[rate_code] >> (0 if is_first else 1 if version == _MPEG_2 else 2)
    bits = _KILOBITS[is_first, layer][size_code - 1] * 1000
    if layer == _LAYER_1:
        size, samples = (12 * bits // rate + padding) * 4, 384
    else:
        samples = 576 if layer == _LAYER_3 and not is_first else 1152
        size = samples // 8 * bits // rate + padding
    return _Frame((version, layer, rate, header[3] >> 6 == _MONO), size, samples)


def _goes_on(raw: bytes, position: int) -> bool:
    """Whether more frames follow something that is none."""
    for tries, found in enumerate(_BEGINNING.finditer(raw, position)):
        if tries > _MOST_TRIES or _is_run(raw, found.start()):
            return True
    return False


def _is_run(raw: bytes, position: int) -> bool:
    first = _frame(raw, position)
    for _ in range(_FRAMES_IN_A_ROW):
        frame = _frame(raw, position)
        if frame is None or first is None or frame.form != first.form:
            return False
        position += frame.size
    return True


def _stated(frame: bytes, form: _Frame) -> "tuple[int | None, int]":
    """Returns the frames of a file, and their bytes, by what encoders write into its first one."""
    version, _, _, is_mono = form.form
    side = (17 if is_mono else 32) if version == _MPEG_1 else (9 if is_mono else 17)
    # Two more bytes are there when frames have a checksum.
    for mark in (_HEADER_BYTES + side, _HEADER_BYTES + side + 2):
        if frame[mark : mark + 4] in (b"Xing", b"Info") and mark + 16 <= len(frame):
            flags, frames, size = struct.unpack_from(">III", frame, mark + 4)
            has_frames, has_size = flags & 1, flags & 3 == _BOTH
            return (frames if has_frames else None), (size if has_size else 0)
    if frame[36:40] == b"VBRI":
        return int.from_bytes(frame[50:54], "big"), int.from_bytes(frame[46:50], "big")
    return None, 0
