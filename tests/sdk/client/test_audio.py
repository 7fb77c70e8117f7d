"""WAV files, honest and otherwise."""

import struct
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stagewire.client import audio, write_wav
from stagewire.client.wav import read_wave, write_samples
from stagewire.errors import MediaInvalidError
from stagewire.limits import MEDIA_BYTES

pytestmark = pytest.mark.unit

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
SUFFIX = bytes.fromhex("000000001000800000aa00389b71")


def chunk(kind, body, size=None):
    return (
        kind
        + struct.pack("<I", len(body) if size is None else size)
        + body
        + b"\0" * (len(body) % 2)
    )


def make_format(tag, bits, channels=1, rate=16000, frame=None, extra=b""):
    frame = channels * bits // 8 if frame is None else frame
    return struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits) + extra


def make_file(form, body, *before, data_size=None, riff_size=None):
    rest = b"WAVE" + b"".join(before) + chunk(b"fmt ", form) + chunk(b"data", body, data_size)
    return b"RIFF" + struct.pack("<I", len(rest) if riff_size is None else riff_size) + rest


def extensible(tag, bits, channels, valid_bits=None, suffix=SUFFIX):
    extra = struct.pack("<HHIH", 22, valid_bits or bits, 0, tag) + suffix
    return make_format(EXTENSIBLE, bits, channels, extra=extra)


VALUES = np.array([0, 0.5, -0.5, -1])
BODIES = {
    (PCM, 8): bytes([128, 192, 64, 0]),
    (PCM, 16): np.array([0, 1 << 14, -(1 << 14), -(1 << 15)], "<i2").tobytes(),
    (PCM, 24): b"".join(
        number.to_bytes(3, "little", signed=True) for number in (0, 1 << 22, -(1 << 22), -(1 << 23))
    ),
    (PCM, 32): np.array([0, 1 << 30, -(1 << 30), -(1 << 31)], "<i4").tobytes(),
    (FLOAT, 32): VALUES.astype("<f4").tobytes(),
    (FLOAT, 64): VALUES.astype("<f8").tobytes(),
}


@pytest.mark.parametrize(("tag", "bits"), BODIES)
def test_every_coding_has_the_same_samples(tag, bits):
    read = audio(make_file(make_format(tag, bits), BODIES[tag, bits]))
    assert read["audio"].dtype == np.float32
    assert read["audio"].tolist() == VALUES.tolist()
    assert read["rate"].shape == ()
    assert read["rate"].dtype == np.int32
    assert read["rate"] == 16000


@pytest.mark.parametrize(("tag", "bits"), BODIES)
def test_the_extensible_form_is_read(tag, bits):
    read = audio(make_file(extensible(tag, bits, 2), BODIES[tag, bits]))
    assert read["audio"].tolist() == [0.25, -0.75]


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 64])
def test_channels_are_mixed_into_one(channels):
    frames = np.arange(5 * channels, dtype="<i2").reshape(5, channels)
    read = audio(make_file(make_format(PCM, 16, channels), frames.tobytes()))
    assert np.allclose(read["audio"], frames.mean(axis=1) / 32768)


def test_other_chunks_are_passed_over():
    before = (chunk(b"LIST", b"odd"), chunk(b"JUNK", b""))
    raw = make_file(make_format(PCM, 8), bytes([192]), *before) + chunk(b"id3 ", b"later")
    assert audio(raw)["audio"].tolist() == [0.5]


@pytest.mark.parametrize("riff_size", [0, 4, 0xFFFFFFFF])
def test_the_size_of_the_whole_file_is_not_believed(riff_size):
    assert (
        audio(make_file(make_format(PCM, 8), b"\x80\x80", riff_size=riff_size))["audio"].size == 2
    )


def test_an_unknown_size_means_to_the_end():
    raw = make_file(make_format(PCM, 16), bytes(7), data_size=0xFFFFFFFF)
    assert audio(raw)["audio"].size == 4


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "speech.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(22050)
        file.writeframes(np.array([[100, 300], [-100, 100]], "<i2").tobytes())
    for given_path in (path, str(path)):
        read = audio(given_path)
        assert np.allclose(read["audio"] * 32768, [200, 0])
        assert read["rate"] == 22050


# --- lies and damage ---


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (make_file(make_format(PCM, 16), bytes(8), data_size=10), "is cut off: 8 bytes"),
        (make_file(make_format(PCM, 16), bytes(8), data_size=0xFFFFFFFE), "is cut off"),
        (make_file(make_format(PCM, 16), bytes(8))[:-1], "is cut off: 7 bytes"),
        (make_file(make_format(PCM, 16), bytes(7)), "inside a sample"),
        (make_file(make_format(PCM, 16, 3), bytes(8)), "inside a sample"),
        (make_file(make_format(PCM, 16), b""), "no samples"),
        (make_file(make_format(PCM, 16), b"", data_size=0xFFFFFFFF), "no samples"),
        (make_file(make_format(PCM, 16, channels=0), bytes(8)), "0 channels"),
        (make_file(make_format(PCM, 16, channels=65), bytes(130)), "65 channels"),
        (make_file(make_format(PCM, 16, rate=0), bytes(8)), "rate is 0"),
        (make_file(make_format(PCM, 16, rate=10**6), bytes(8)), "rate is 1000000"),
        (make_file(make_format(PCM, 16, frame=4), bytes(8)), "contradicts itself"),
        (make_file(make_format(PCM, 16, frame=0), bytes(8)), "contradicts itself"),
        (make_file(make_format(PCM, 0), bytes(8)), "0-bit samples"),
        (make_file(make_format(PCM, 12, frame=2), bytes(8)), "12-bit samples"),
        (make_file(make_format(PCM, 64), bytes(8)), "64-bit samples"),
        (make_file(make_format(FLOAT, 16), bytes(8)), "16-bit samples"),
        (make_file(make_format(2, 4), bytes(8)), "ADPCM"),
        (make_file(make_format(6, 8), bytes(8)), "A-law"),
        (make_file(make_format(7, 8), bytes(8)), "mu-law"),
        (make_file(make_format(0x55, 0), bytes(8)), "MP3"),
        (make_file(make_format(PCM, 16)[:14], bytes(8)), "too short"),
        (make_file(make_format(EXTENSIBLE, 16), bytes(8)), "too short"),
        (make_file(extensible(PCM, 16, 1, suffix=bytes(14)), bytes(8)), "unknown coding"),
        (make_file(extensible(0x55, 16, 1), bytes(8)), "MP3"),
        (b"RIFF\4\0\0\0WAVE", "before its samples"),
        (b"RIFF\4\0\0\0WAVE" + chunk(b"data", bytes(4)), "before their format"),
        (b"RIFF\4\0\0\0WAVE" + chunk(b"LIST", b"", size=0xFFFFFFFF), "inside its header"),
        (make_file(make_format(PCM, 16), bytes(8))[:30], "inside its header"),
        *(
            (
                make_file(make_format(FLOAT, bits), np.array([0, bad], f"<f{bits // 8}").tobytes()),
                "not a number",
            )
            for bits in (32, 64)
            for bad in (np.nan, np.inf, -np.inf)
        ),
        (make_file(make_format(FLOAT, 64), np.array([1e300]).tobytes()), "not a number"),
    ],
)
def test_a_file_that_lies_or_is_damaged_is_refused_with_a_remedy(raw, words):
    with pytest.raises(MediaInvalidError, match=words) as refusal:
        audio(raw)
    assert "ffmpeg" in refusal.value.message


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "an empty file"),
        (b"ID3\4" + bytes(20), "MP3"),
        (b"\xff\xfb\x90\x00" + bytes(20), "MP3"),
        (b"fLaC" + bytes(20), "FLAC"),
        (b"OggS" + bytes(20), "Ogg"),
        (b"\0\0\0\x20ftypM4A ", "M4A"),
        (b"\x1aE\xdf\xa3" + bytes(20), "WebM"),
        (b"FORM\0\0\0\0AIFF", "AIFF"),
        (b"RF64\xff\xff\xff\xffWAVE", "RF64"),
        (b"RIFX\0\0\0\0WAVE", "big-endian"),
        (b"RIFF\0\0\0\0AVI LIST", "AVI"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        ("plain täxt".encode(), "is text"),
        (("a" + "ä" * 5000).encode(), "is text"),
        (b"\0\1\2\3\4\5", "unknown kind"),
        (b"\x80\x81\x82\x83\x84\x85", "unknown kind"),
    ],
)
def test_anything_else_is_refused_by_its_name(tmp_path, raw, kind):
    path = tmp_path / "given.wav"
    path.write_bytes(raw)
    with pytest.raises(MediaInvalidError, match=kind) as refusal:
        audio(path)
    assert "given.wav" in refusal.value.message
    assert "ffmpeg" in refusal.value.message


def test_no_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent.wav"):
        with pytest.raises(MediaInvalidError, match="not a file"):
            audio(path)


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "long.wav"
    with path.open("wb") as file:
        file.truncate(MEDIA_BYTES + 1)
    with pytest.raises(MediaInvalidError, match="over the limit"):
        audio(path)


@settings(max_examples=400)
@given(
    st.binary(max_size=120)
    | st.builds(
        lambda form, body, size: make_file(form, body, data_size=size),
        st.binary(max_size=44),
        st.binary(max_size=40),
        st.none() | st.integers(0, 2**32 - 1),
    )
)
def test_no_content_does_worse_than_a_refusal(raw):
    try:
        read = audio(raw)
    except MediaInvalidError:
        return
    assert np.isfinite(read["audio"]).all()


@given(st.data())
def test_a_changed_byte_does_no_worse_than_a_refusal(data):
    raw = bytearray(make_file(extensible(PCM, 24, 2), bytes(24)))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = audio(bytes(raw))
    except MediaInvalidError:
        return
    assert read["audio"].ndim == 1


# --- writing ---


@given(arrays.arrays(np.int16, st.integers(1, 50)), st.integers(1, 768_000))
def test_what_was_written_is_read(samples, rate):
    for given_samples in (samples, samples / np.float32(32768), samples / 32768):
        back = read_wave(write_samples(given_samples, rate), "x")
        assert (back.samples * 32768).tolist() == samples.tolist()
        assert back.rate == rate


def test_python_reads_what_was_written(tmp_path):
    path = tmp_path / "out.wav"
    write_wav(path, np.array([0, 2, -2], np.float32), np.int32(8000))
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8000)
        samples = np.frombuffer(file.readframes(10), "<i2")
    assert samples.tolist() == [0, 32767, -32768]


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        (np.zeros((2, 2)), 8000),
        (np.array(["a"]), 8000),
        (np.array([np.nan]), 8000),
        (np.zeros(2, np.int32), 8000),
        (np.zeros(2), 0),
        (np.zeros(2), 10**6),
    ],
)
def test_what_is_no_sound_is_not_written(tmp_path, samples, rate):
    with pytest.raises(MediaInvalidError):
        write_wav(tmp_path / "out.wav", samples, rate)
    assert not (tmp_path / "out.wav").exists()
