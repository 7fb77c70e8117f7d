"""FLAC, MP3 and Ogg files, honest and otherwise."""

import io
import sys
import tracemalloc

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from stagewire.client import audio
from stagewire.errors import MediaInvalidError

pytestmark = pytest.mark.unit

FORMS = [
    ("FLAC", "PCM_16"),
    ("FLAC", "PCM_24"),
    ("OGG", "VORBIS"),
    ("OGG", "OPUS"),
    ("MP3", "MPEG_LAYER_III"),
]
NAMES = ["flac", "flac-24", "vorbis", "opus", "mp3"]
RATE = 16_000


def sine(frames, channels=1):
    times = np.arange(frames) / RATE
    return np.stack([0.4 * np.sin(2 * np.pi * (300 + 40 * c) * times) for c in range(channels)], 1)


def encoded(form, samples, rate=RATE):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form[0], subtype=form[1])
    return file.getvalue()


SHORT = {form: encoded(form, sine(6_000, 2)) for form in FORMS}
LONG_OGG = encoded(("OGG", "VORBIS"), sine(400_000))


def ogg_pages(raw):
    starts, position = [], 0
    while position < len(raw):
        starts.append(position)
        table = raw[position + 27 : position + 27 + raw[position + 26]]
        position += 27 + len(table) + sum(table)
    return starts


def tag(size):
    digits = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\4\0\0" + digits + bytes(size)


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("channels", [1, 2])
def test_what_was_encoded_is_heard(form, channels):
    # Longer than a block: decoders keep what they know from block to block.
    samples = sine(300_000, channels)
    read = audio(encoded(form, samples))
    assert read["audio"].dtype == np.float32
    assert read["rate"] == RATE
    mixed = samples.mean(axis=1)
    assert len(read["audio"]) == len(mixed)
    assert np.abs(read["audio"] - mixed).max() < 0.1
    whole, _ = soundfile.read(io.BytesIO(encoded(form, samples)), always_2d=True)
    assert np.allclose(read["audio"], whole.mean(axis=1), atol=1e-5)


@pytest.mark.parametrize("form", FORMS[:4], ids=NAMES[:4])
def test_six_channels_are_mixed_into_one(form):
    read = audio(encoded(form, sine(20_000, 6)))["audio"]
    assert np.abs(read - sine(20_000, 6).mean(axis=1)).max() < 0.1


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_a_file_is_known_by_its_content(tmp_path, form):
    path = tmp_path / "speech.wav"
    path.write_bytes(SHORT[form])
    assert audio(path)["audio"].size == 6_000


@pytest.mark.parametrize("form", [FORMS[0], FORMS[4]], ids=["flac", "mp3"])
def test_tags_before_the_sound_are_passed_over(form):
    assert audio(tag(300) + tag(5) + SHORT[form])["audio"].size == 6_000


@pytest.mark.parametrize(
    "rest", [b"TAG" + bytes(125), b"APETAGEX" + b"\xff" * 300, bytes(2000), b"\xff\xfb\x90"]
)
def test_tags_after_the_sound_are_passed_over(rest):
    assert audio(SHORT[FORMS[4]] + rest)["audio"].size == 6_000


def test_mp3_without_a_header_of_its_own_is_read_as_far_as_it_goes():
    raw = SHORT[FORMS[4]]
    # The frame that counts the others is the first one.
    start = raw.index(b"\xff\xf3", 4)
    whole = audio(raw[start:])["audio"]
    assert 0 < audio(raw[start:-20])["audio"].size < whole.size


# --- damage ---


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_every_beginning_of_a_file_is_refused(form, capfd):
    raw = SHORT[form]
    for length in {*range(0, len(raw), 37), *range(120), *range(len(raw) - 60, len(raw))}:
        with pytest.raises(MediaInvalidError, match="ffmpeg"):
            audio(raw[:length])
    # Decoders in native code write what they think of a file where they like.
    assert capfd.readouterr().err == ""


def test_ogg_is_cut_off_inside_a_page_or_a_broadcast_up_to_its_last_one():
    starts = ogg_pages(LONG_OGG)
    middle = (starts[4] + starts[5]) // 2
    with pytest.raises(MediaInvalidError, match="cut off"):
        audio(LONG_OGG[:middle])
    assert 100_000 < audio(LONG_OGG[: starts[4]])["audio"].size < 400_000


def test_ogg_without_a_page_is_refused():
    starts = ogg_pages(LONG_OGG)
    with pytest.raises(MediaInvalidError, match="page missing"):
        audio(LONG_OGG[: starts[3]] + LONG_OGG[starts[4] :])


def test_ogg_with_a_changed_byte_is_refused():
    starts = ogg_pages(LONG_OGG)
    raw = bytearray(LONG_OGG)
    raw[(starts[3] + starts[4]) // 2] ^= 0xFF
    with pytest.raises(MediaInvalidError, match="damaged"):
        audio(bytes(raw))


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_two_recordings_in_one_file_are_refused(form):
    with pytest.raises(MediaInvalidError, match="ffmpeg"):
        audio(SHORT[form] + SHORT[form])


def test_mp3_with_damage_inside_is_refused():
    raw = bytearray(encoded(FORMS[4], sine(100_000)))
    frame = raw.index(b"\xff\xf3", len(raw) // 2)
    raw[frame] = 0
    with pytest.raises(MediaInvalidError, match=f"at byte {frame}"):
        audio(bytes(raw))


def with_length(raw, count):
    """A FLAC file that says it has so many samples: 36 bits from the middle of byte 21."""
    kept = raw[21] & 0xF0
    return (
        raw[:21] + bytes([kept | count >> 32]) + (count & 0xFFFFFFFF).to_bytes(4, "big") + raw[26:]
    )


def test_flac_that_does_not_say_its_length_is_read():
    assert audio(with_length(SHORT[FORMS[0]], 0))["audio"].size == 6_000


def test_flac_that_claims_much_costs_nothing_and_is_refused():
    raw = with_length(SHORT[FORMS[0]], 2**36 - 1)
    audio(SHORT[FORMS[0]])
    tracemalloc.start()
    try:
        with pytest.raises(MediaInvalidError, match="6000 samples are there of 68719476735"):
            audio(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_a_small_file_of_much_sound_is_refused_on_the_way(form, monkeypatch):
    monkeypatch.setattr("stagewire.client.sound.AUDIO_SAMPLES", 5_000)
    with pytest.raises(MediaInvalidError, match="over 5000 samples; cut it"):
        audio(SHORT[form])


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@given(data=st.data())
def test_changed_bytes_do_no_worse_than_a_refusal(form, data):
    raw = bytearray(SHORT[form])
    for _ in range(data.draw(st.integers(1, 4))):
        end = data.draw(st.sampled_from([60, 400, len(raw)]))
        raw[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    try:
        read = audio(bytes(raw))
    except MediaInvalidError:
        return
    assert np.isfinite(read["audio"]).all()


@given(st.sampled_from([b"fLaC", b"OggS", b"ID3", b"\xff\xfb\x90\x64", tag(5)]), st.binary())
def test_no_content_does_worse_than_a_refusal(beginning, rest):
    with pytest.raises(MediaInvalidError):
        audio(beginning + rest)


def test_mp3_of_endless_beginnings_is_refused_soon():
    frame = b"\xff\xfb\x90\x64" + bytes(413)
    with pytest.raises(MediaInvalidError, match="damaged"):
        audio(frame * 3 + b"\xff\xfb\x90\x00\x01" * 1_000_000)


# --- without the library, and other kinds ---


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_without_the_library_it_says_what_to_install(form, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MediaInvalidError, match=r"stagewire\[audio\].*ffmpeg"):
        audio(SHORT[form])


def ogg(packet):
    return b"OggS\0\2" + bytes(20) + bytes([1, len(packet)]) + packet


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "an empty file"),
        (b"\xff\xf1\x50\x80" + bytes(20), "AAC"),
        (tag(20) + b"\xff\xf1\x50\x80" + bytes(20), "AAC"),
        (ogg(b"Speex   1.2"), "Speex"),
        (ogg(b"\x80theora"), "Ogg video"),
        (ogg(b"else"), "an Ogg file"),
        (b"\0\0\0\x20ftypM4A ", "M4A"),
        (b"\0\0\0\x20ftypisom", "MP4"),
        (b"\0\0\0\x14ftypqt  ", "QuickTime"),
        (b"\x1aE\xdf\xa3" + bytes(20), "WebM"),
        (b"FORM\0\0\0\0AIFF", "AIFF"),
        (b"FORM\0\0\0\0AIFC", "AIFF"),
        (b"caff\0\1\0\0", "CAF"),
        (b".snd\0\0\0\x18", "AU"),
        (b"RIFX\0\0\0\0WAVE", "big-endian"),
        (b"riff.\x91\xcf\x11" + bytes(20), "Wave64"),
        (b"RIFF\0\0\0\0AVI LIST", "AVI"),
        (b"#!AMR\n", "AMR"),
        (b"MThd\0\0\0\6", "MIDI"),
        (b"0&\xb2u\x8ef\xcf\x11\xa6\xd9", "WMA"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<!DOCTYPE html><title>404</title>", "a web page"),
        (b"\x93NUMPY\1\0", "numpy.load"),
        ("plain täxt".encode(), "is text"),
        (("a" + "ä" * 5000).encode(), "is text"),
        (b"\0\1\2\3\4\5", "unknown kind"),
        (b"\x80\x81\x82\x83\x84\x85", "unknown kind"),
        (bytes(10_000), "unknown kind"),
    ],
)
def test_anything_else_is_refused_by_its_name(tmp_path, raw, kind):
    path = tmp_path / "given.wav"
    path.write_bytes(raw)
    with pytest.raises(MediaInvalidError, match=kind) as refusal:
        audio(path)
    assert "given.wav" in refusal.value.message
    assert "ffmpeg" in refusal.value.message
