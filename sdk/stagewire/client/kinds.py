"""What a file seems to be, by its first bytes; its name is not asked."""

from typing import Final

HEAD_BYTES: Final = 4096
"""What is looked at; enough for every mark below."""
AUDIO_SUFFIXES: Final = frozenset(
    {".wav", ".wave", ".bwf", ".rf64", ".flac", ".mp3", ".ogg", ".oga", ".opus"}
)
"""Endings of names that files have which `audio` may read."""
IMAGE_SUFFIXES: Final = frozenset(
    {".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
)
"""Endings of names that files have which `image` may read."""

_MARKS: Final = (
    (0, b"ID3", "MP3 audio"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"caff", "CAF audio"),
    (0, b".snd", "AU audio"),
    (0, b"wvpk", "WavPack audio"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"#!AMR", "AMR audio"),
    (0, b"MThd", "a MIDI file, which holds notes and no sound"),
    (0, b"riff.\x91\xcf\x11", "Wave64 audio"),
    (0, b"RIFX", "RIFX audio, a big-endian WAV file"),
    (0, b"0&\xb2u\x8ef\xcf\x11", "a WMA or WMV file"),
    (0, b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (8, b"CR\x02", "a Canon raw photo"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"II+\0", "a TIFF image"),
    (0, b"MM\0+", "a TIFF image"),
    (0, b"\0\0\0\x0cJXL ", "a JPEG XL image"),
    (0, b"\xff\x0a", "a JPEG XL image"),
    (0, b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (0, b"8BPS", "a Photoshop document"),
    (0, b"\0\0\1\0", "a Windows icon"),
    (0, b"%PDF", "a PDF document"),
    (0, b"%!PS", "a PostScript document"),
    (0, b"PK\x03\x04", "a ZIP archive"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"\x93NUMPY", "a numpy array; read it with numpy.load"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file with `git lfs pull`"),
    (0, b"\xff\xfe\0\0", "UTF-32 text"),
    (0, b"\0\0\xfe\xff", "UTF-32 text"),
    (0, b"\xff\xfe", "UTF-16 text"),
    (0, b"\xfe\xff", "UTF-16 text"),
)
_OGG_CODECS: Final = (
    (b"\x01vorbis", "Ogg Vorbis audio"),
    (b"OpusHead", "Ogg Opus audio"),
    (b"\x7fFLAC", "Ogg FLAC audio"),
    (b"Speex   ", "Ogg Speex audio"),
    (b"\x80theora", "an Ogg video"),
    (b"fishead\0", "an Ogg video"),
)
_BRANDS: Final = {
    **dict.fromkeys(
        (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"), "a HEIC image"
    ),
    **dict.fromkeys((b"avif", b"avis"), "an AVIF image"),
    **dict.fromkeys((b"M4A ", b"M4B "), "M4A audio"),
    b"qt  ": "a QuickTime film",
}
_OGG_FIRST_PACKET: Final = 28
"""Where the first packet of an Ogg file begins: its page has one segment."""
_BITMAP_HEADERS: Final = (12, 40, 52, 56, 64, 108, 124)


def kind_of(head: bytes) -> str:
    """Returns what a file seems to be that begins like this, for people."""
    if not head:
        return "an empty file"
    if head.startswith(b"OggS"):
        packet = head[_OGG_FIRST_PACKET:]
        return next((kind for mark, kind in _OGG_CODECS if packet.startswith(mark)), "an Ogg file")
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "an MP4 file")
    container = _container(head)
    if container:
        return container
    for position, mark, kind in _MARKS:
        if head.startswith(mark, position):
            return kind
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BITMAP_HEADERS:
        return "a BMP image"
    return _mpeg(head) or _text(head)


def is_wave(head: bytes) -> bool:
    """Whether this begins a WAV file, also one of the form for more than 4 GiB."""
    return head[:4] in (b"RIFF", b"RF64", b"BW64") and head[8:12] == b"WAVE"


def _container(head: bytes) -> str:
    if is_wave(head):
        return "WAV audio"
    if head.startswith(b"FORM"):
        return "AIFF audio" if head[8:12] in (b"AIFF", b"AIFC") else "an IFF file"
    if head.startswith(b"RIFF"):
        known = {b"WEBP": "a WebP image", b"AVI ": "an AVI film"}
        return known.get(head[8:12], f"a RIFF file of kind {head[8:12]!r}")
    return ""


def _mpeg(head: bytes) -> str:
    """Names what begins with the sync word of MPEG: 11 bits, then version and layer."""
    if len(head) < 2 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:  # noqa: PLR2004
        return ""
    return "AAC audio" if head[1] & 0xF6 == 0xF0 else "MP3 audio"  # noqa: PLR2004 - no layer


def _text(head: bytes) -> str:
    try:
        words = head.decode()
    except UnicodeDecodeError as error:
        # A cut inside the last character is no damage.
        if len(head) < HEAD_BYTES or error.start < len(head) - 3:
            return "data of an unknown kind"
        words = head[: error.start].decode()
    if "\0" in words:
        return "data of an unknown kind"
    start = words.removeprefix("\ufeff").lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        return "a web page"
    if start.startswith("<svg") or (start.startswith("<?xml") and "<svg" in start):
        return "an SVG drawing"
    return "text"
