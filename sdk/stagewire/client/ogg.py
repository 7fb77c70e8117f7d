"""Pages of an Ogg file: walked before a decoder sees them, which passes over what is missing."""

from typing import Final

from stagewire.client.sound import damaged

_PAGE_HEAD: Final = 27
_BEGINS, _ENDS = 0x02, 0x04


def pages_of(raw: bytes, name: str) -> bytes:
    """Returns the pages of the one stream in a file, without what follows its end.

    A recording of a broadcast has no end; it is taken up to its last page.

    Raises:
        MediaInvalidError: a page is missing or damaged, or there are several streams.
    """
    position, expected, serial = 0, 0, b""
    while position < len(raw):
        if not raw.startswith(b"OggS", position):
            raise damaged(name, f"is Ogg audio that is damaged at byte {position}")
        end = _end_of_page(raw, position)
        if end is None:
            raise damaged(name, "is Ogg audio that is cut off")
        flags, number = (
            raw[position + 5],
            int.from_bytes(raw[position + 18 : position + 22], "little"),
        )
        serial = serial or raw[position + 14 : position + 18]
        if raw[position + 14 : position + 18] != serial or (flags & _BEGINS and position):
            raise damaged(name, "is an Ogg file of several recordings or tracks")
        if number != expected:
            raise damaged(name, f"is Ogg audio with a page missing at byte {position}")
        position, expected = end, expected + 1
        if flags & _ENDS:
            break
    if raw.startswith(b"OggS", position):
        raise damaged(name, "is an Ogg file of several recordings or tracks")
    return raw[:position]


def _end_of_page(raw: bytes, position: int) -> "int | None":
    table = position + _PAGE_HEAD
    if table > len(raw):
        return None
    segments = raw[table : table + raw[table - 1]]
    end = table + raw[table - 1] + sum(segments)
    return end if end <= len(raw) else None
