"""WAV files, honest and otherwise."""

import contextlib
import io
import struct
import tracemalloc
import wave

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stagewire.client import audio, write_wav
from stagewire.client.wav import read_wave, write_samples
from stagewire.errors import MediaInvalidError

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


def make_rate(rate):
    """A file with a rate for which there is no rate of bytes."""
    form = struct.pack("<HHIIHH", PCM, 1, rate, 12345, 2, 16)
    return make_file(form, bytes(8))


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


def test_a_pad_byte_may_be_missing():
    odd = chunk(b"LIST", b"odd")[:-1]
    assert audio(make_file(make_format(PCM, 8), bytes([192]), odd))["audio"].tolist() == [0.5]


def test_samples_may_stand_before_their_format():
    form = chunk(b"fmt ", make_format(PCM, 8))
    raw = b"RIFF\0\0\0\0WAVE" + chunk(b"data", bytes([192, 64])) + form
    assert audio(raw)["audio"].tolist() == [0.5, -0.5]


def test_the_rate_of_bytes_is_not_believed():
    for rate in (1, 768_000):
        assert audio(make_rate(rate))["rate"] == rate


@pytest.mark.parametrize(
    "rest",
    [
        b"garbage!" * 40,
        bytes(512),
        b"\xff\xfe\x00",
        chunk(b"LIST", b"", size=0x7FFFFFFF),
        chunk(b"bext", bytes(602)) + chunk(b"id3 ", b"ID3..."),
    ],
)
def test_what_follows_the_samples_is_no_sound(rest):
    raw = make_file(make_format(PCM, 8), bytes([192, 64]))
    assert audio(raw + rest)["audio"].tolist() == [0.5, -0.5]


def test_fewer_valid_bits_stand_in_the_upper_ones():
    numbers = np.array([1 << 30, -(1 << 31)], "<i4")
    raw = make_file(extensible(PCM, 32, 1, valid_bits=24), numbers.tobytes())
    assert audio(raw)["audio"].tolist() == [0.5, -1]


@pytest.mark.parametrize(("tag", "subtype"), [(6, "ALAW"), (7, "ULAW")])
def test_samples_of_telephones_are_as_another_library_has_them(tag, subtype):
    body = bytes(range(256))
    file = io.BytesIO(make_file(make_format(tag, 8), body))
    other, _ = soundfile.read(file, dtype="float32")
    assert np.array_equal(audio(file.getvalue())["audio"], other)


@pytest.mark.parametrize("magic", [b"RF64", b"BW64"])
@pytest.mark.parametrize("size", [4, 0, 2**64 - 1])
def test_the_form_for_long_files_is_read(magic, size):
    sizes = struct.pack("<QQQI", 0, size, 2, 0)
    raw = make_file(
        make_format(PCM, 16), BODIES[PCM, 16][:4], chunk(b"ds64", sizes), data_size=2**32 - 1
    )
    assert audio(magic + raw[4:])["audio"].tolist() == [0, 0.5]


@pytest.mark.parametrize("riff_size", [0, 4, 0xFFFFFFFF])
def test_the_size_of_the_whole_file_is_not_believed(riff_size):
    assert (
        audio(make_file(make_format(PCM, 8), b"\x80\x80", riff_size=riff_size))["audio"].size == 2
    )


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0x80000000, 0xFFFFFFDB, 0xFFFFFFFF])
@pytest.mark.parametrize("channels", [1, 2])
def test_an_unknown_size_means_to_the_last_whole_sample(size, channels):
    raw = make_file(make_format(PCM, 16, channels), bytes([1] * 7), data_size=size)
    assert audio(raw + b"x")["audio"].size == 4 // channels


def test_a_size_of_zero_before_chunks_means_that_there_are_no_samples():
    raw = make_file(make_format(PCM, 16), b"") + chunk(b"LIST", b"abc") + chunk(b"id3 ", b"")
    with pytest.raises(MediaInvalidError, match="no samples"):
        audio(raw)


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
        (make_file(make_format(PCM, 16), bytes(8), data_size=0x7FFFEFFF), "is cut off"),
        (make_file(make_format(PCM, 16), bytes(8))[:-1], "is cut off: 7 bytes"),
        (make_file(make_format(PCM, 16), bytes(7)), "inside a sample"),
        (make_file(make_format(PCM, 16, 3), bytes(8)), "inside a sample"),
        (make_file(make_format(PCM, 16), b""), "no samples"),
        (make_file(make_format(PCM, 16), b"", data_size=0xFFFFFFFF), "no samples"),
        (make_file(make_format(PCM, 16, channels=0), bytes(8)), "0 channels"),
        (make_file(make_format(PCM, 16, channels=65), bytes(130)), "65 channels"),
        (make_file(make_format(PCM, 16, rate=0), bytes(8)), "rate is 0"),
        (make_file(make_format(PCM, 16, rate=10**6), bytes(8)), "rate is 1000000"),
        (make_rate(2**32 - 1), "rate is 4294967295"),
        (make_file(make_format(PCM, 16, frame=4), bytes(8)), "contradicts itself"),
        (make_file(make_format(PCM, 16, frame=0), bytes(8)), "contradicts itself"),
        (make_file(make_format(PCM, 0), bytes(8)), "0-bit samples"),
        (make_file(make_format(PCM, 12, frame=2), bytes(8)), "12-bit samples"),
        (make_file(make_format(PCM, 64), bytes(8)), "64-bit samples"),
        (make_file(make_format(FLOAT, 16), bytes(8)), "16-bit samples"),
        (make_file(make_format(2, 4), bytes(8)), "ADPCM"),
        (make_file(make_format(0x11, 4, frame=1), bytes(8)), "IMA ADPCM"),
        (make_file(extensible(PCM, 16, 1, valid_bits=17), bytes(8)), "17 bits of 16"),
        (make_file(make_format(0x55, 0), bytes(8)), "MP3"),
        (make_file(make_format(PCM, 16)[:14], bytes(8)), "too short"),
        (make_file(make_format(EXTENSIBLE, 16), bytes(8)), "too short"),
        (make_file(extensible(PCM, 16, 1, suffix=bytes(14)), bytes(8)), "unknown coding"),
        (make_file(extensible(0x55, 16, 1), bytes(8)), "MP3"),
        (b"RIFF\4\0\0\0WAVE", "before its samples"),
        (b"RIFF\4\0\0\0WAVE" + chunk(b"data", bytes(4)), "not say their format"),
        (b"RIFF\4\0\0\0WAVE" + chunk(b"data", bytes(4), 2**32 - 1), "before their format"),
        (make_file(make_format(PCM, 16), bytes(8)) + chunk(b"data", bytes(4)), "several pieces"),
        (
            make_file(make_format(PCM, 16), bytes(8), chunk(b"fmt ", make_format(PCM, 8))),
            "the format of its samples",
        ),
        # The size of the samples was never corrected, that of the whole was.
        (
            make_file(make_format(PCM, 16), bytes(range(128, 228)), data_size=40),
            "goes on after that",
        ),
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
        (make_file(make_format(FLOAT, 32, 2), np.array([3e38] * 2, "<f4").tobytes()), "infinite"),
    ],
)
def test_a_file_that_lies_or_is_damaged_is_refused_with_a_remedy(raw, words):
    with pytest.raises(MediaInvalidError, match=words) as refusal:
        audio(raw)
    assert "ffmpeg" in refusal.value.message


def test_floats_of_another_scale_are_refused_with_a_remedy():
    numbers = np.array([0, 30000], "<f4")
    with pytest.raises(MediaInvalidError, match=r"30000.*divide them"):
        audio(make_file(make_format(FLOAT, 32), numbers.tobytes()))


def test_floats_a_little_over_one_are_kept():
    numbers = np.array([1.5, -2], "<f4")
    assert audio(make_file(make_format(FLOAT, 32), numbers.tobytes()))["audio"].tolist() == [
        1.5,
        -2,
    ]


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


@pytest.mark.parametrize("data_size", [None, 0, 0xFFFFFFFF])
@pytest.mark.parametrize(("tag", "bits"), BODIES)
def test_every_beginning_of_a_file_is_refused_or_a_beginning_of_its_samples(tag, bits, data_size):
    raw = make_file(extensible(tag, bits, 1), BODIES[tag, bits], chunk(b"LIST", b"abc"))
    if data_size is not None:
        position = raw.index(b"data") + 4
        raw = raw[:position] + struct.pack("<I", data_size) + raw[position + 4 :]
    counts = set()
    for length in range(len(raw)):
        try:
            read = audio(raw[:length])["audio"]
        except MediaInvalidError:
            continue
        counts.add(len(read))
        assert read.tolist() == VALUES[: len(read)].tolist()
    assert counts == (set() if data_size is None else {1, 2, 3})


def test_a_header_that_claims_much_costs_nothing():
    long = struct.pack("<QQQI", 2**40, 2**40, 2**39, 0)
    claims = [
        make_file(make_format(PCM, 16, 64), bytes(128), data_size=0x7FFF0000),
        make_file(make_format(PCM, 16), bytes(8), chunk(b"ds64", long), data_size=2**32 - 1),
        make_file(make_format(PCM, 16), bytes(8), chunk(b"LIST", b"", size=2**32 - 1)),
    ]
    tracemalloc.start()
    try:
        for raw in claims:
            with contextlib.suppress(MediaInvalidError):
                audio(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_samples_over_the_limit_are_refused_before_they_are_decoded(monkeypatch):
    monkeypatch.setattr("stagewire.client.sound.AUDIO_SAMPLES", 100)
    assert audio(make_file(make_format(PCM, 8, 2), bytes(200)))["audio"].size == 100
    with pytest.raises(MediaInvalidError, match="over 100 samples; cut it"):
        audio(make_file(make_format(PCM, 8, 2), bytes(202)))


def test_a_long_file_is_decoded_in_blocks_without_a_seam():
    frames = np.random.default_rng(1).integers(-(1 << 15), 1 << 15, (200_000, 3), np.int16)
    read = audio(make_file(make_format(PCM, 16, 3), frames.tobytes()))["audio"]
    assert np.allclose(read, frames.mean(axis=1) / 32768, atol=1e-6)


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
        ([0.0, 0.5], 8000),
        (np.zeros(2), True),
        (np.zeros(2), 8000.5),
        (np.zeros(2, bool), 8000),
    ],
)
def test_what_is_no_sound_is_not_written(tmp_path, samples, rate):
    with pytest.raises(MediaInvalidError):
        write_wav(tmp_path / "out.wav", samples, rate)
    assert not (tmp_path / "out.wav").exists()
