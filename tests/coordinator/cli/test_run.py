"""`coordinator run`: values in, outputs and the receipt out."""

import json
import subprocess
import sys
import wave

import numpy as np
import pytest

from coordinator.cli.values import pairs, read_inputs
from stagewire.client import audio, write_wav
from stagewire.errors import ExitCode, FieldInvalidError, MediaInvalidError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType

pytestmark = pytest.mark.integration
AUDIO = Port("audio", DataType.FLOAT32, (Dimension("samples", 100_000),))
RATE = Port("rate", DataType.INT32)
TEXT = Port("text", DataType.UTF8, (), is_stream=True)


@pytest.fixture
def running(program):
    program.up(program.plan())
    return program


def test_a_text_is_answered_as_it_comes_with_a_receipt(running):
    result = running.run("run", "--pipeline", "words", "--input", "text:hello")
    assert result.returncode == ExitCode.USAGE, "the port is part of the value"

    result = running.run("run", "--pipeline", "words", "--input", "text=text:hello world")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("text: hello world\n")
    assert "echo   b       cpu" in result.stdout
    assert "first output" in result.stdout


def test_json_has_outputs_and_receipt_in_one_document(running):
    document = running.json("run", "--pipeline", "words", "--input", "text=text:hello")
    assert document["outputs"] == {"text": {"text": "hello", "items": 1}}
    (stage,) = document["receipt"]["stages"]
    assert (stage["worker_id"], stage["verdict"], stage["grade"]) == ("b", "full", "B")
    assert {hop["transport"] for hop in document["receipt"]["hops"]} == {"inline"}


def test_arrays_go_in_and_out_as_files(running):
    array = np.linspace(-1, 1, 100_000, dtype=np.float32)
    np.save(running.root / "in.npy", array)

    document = running.json(
        *("run", "--pipeline", "numbers", "--input", "x=@in.npy", "--output", "y=out.npy")
    )

    assert document["outputs"]["y"] == {"file": "out.npy", "items": 1}
    assert {hop["transport"] for hop in document["receipt"]["hops"]} == {"chunked"}
    np.testing.assert_array_equal(np.load(running.root / "out.npy"), array)


def test_audio_goes_in_and_out_as_wav(running):
    write_wav(running.root / "in.wav", np.linspace(-0.5, 0.5, 8000, dtype=np.float32), 8000)
    arguments = ("run", "--pipeline", "numbers", "--input", "x=@in.wav", "--output", "y=out.wav")

    assert running.run(*arguments).returncode == ExitCode.USAGE, "a WAV file needs a rate"
    assert running.run(*arguments, "--rate", 8000).returncode == 0

    with wave.open(str(running.root / "out.wav")) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 8000)


def test_text_goes_in_and_out_as_files(running):
    (running.root / "in.txt").write_text("grüße")
    result = running.run(
        *("run", "--pipeline", "words", "--input", "text=@in.txt", "--output", "text=out.txt")
    )
    assert result.returncode == 0, result.stderr
    assert (running.root / "out.txt").read_text() == "grüße"
    assert "text: 1 items in out.txt" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--pipeline", "none"), ExitCode.REFUSED, "PIPELINE_UNKNOWN"),
        (("--pipeline", "words"), ExitCode.REFUSED, "FIELD_INVALID"),
        (("--pipeline", "words", "--input", "z=text:a"), ExitCode.REFUSED, "no input 'z'"),
        (("--pipeline", "words", "--input", "text=3"), ExitCode.REFUSED, "text:WORDS"),
        (("--pipeline", "words", "--input", "text=@no.txt"), ExitCode.REFUSED, "MEDIA_INVALID"),
        (("--pipeline", "numbers", "--input", "x=text:a"), ExitCode.REFUSED, "TENSOR_MISMATCH"),
        (
            ("--pipeline", "words", "--input", "text=text:a", "--output", "z=a.txt"),
            ExitCode.REFUSED,
            "no output 'z'",
        ),
        (
            ("--pipeline", "words", "--input", "text=text:a", "--output", "text=no/a.txt"),
            ExitCode.REFUSED,
            "PATH_FORBIDDEN",
        ),
        (
            ("--pipeline", "words", "--input", "text=text:a", "--output", "text=a.npy"),
            ExitCode.REFUSED,
            "TENSOR_MISMATCH",
        ),
        (
            ("--pipeline", "words", "--input", "text=text:a", "--output", "text=a.xyz"),
            ExitCode.USAGE,
            ".wav",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(running, arguments, code, says):
    result = running.run("run", *arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert says in result.stderr


def test_a_request_that_takes_too_long_ends_with_1(program):
    program.up(program.plan(script=[{"on": "item", "do": "slow", "seconds": 600}]))
    np.save(program.root / "in.npy", np.ones(3, np.float32))
    result = program.run(
        *("run", "--pipeline", "numbers", "--input", "x=@in.npy", "--timeout", 0.5)
    )
    assert result.returncode == ExitCode.FAULT
    assert "DEADLINE_EXCEEDED: " in result.stderr


def test_a_worker_that_dies_ends_the_request_with_its_reason(program):
    program.up(program.plan(script=[{"on": "item", "do": "crash"}]))
    np.save(program.root / "in.npy", np.ones(3, np.float32))
    result = program.run("run", "--pipeline", "numbers", "--input", "x=@in.npy", "--json")
    assert (result.returncode, result.stdout) == (ExitCode.FAULT, "")
    assert "WORKER_LOST: " in result.stderr


def test_a_request_without_a_coordinator_fails(program):
    result = program.run("run", "--pipeline", "words", "--input", "text=text:a")
    assert result.returncode == ExitCode.FAULT
    assert "COORDINATOR_UNREACHABLE: " in result.stderr


# --- values ---


def test_a_wav_file_fills_the_rate_as_well(tmp_path):
    path = tmp_path / "in.wav"
    write_wav(path, np.zeros(10, np.float32), 8000)
    values = read_inputs({"audio": f"@{path}"}, [AUDIO, RATE])
    assert values["rate"] == audio(path)["rate"] == 8000
    own = read_inputs({"audio": f"@{path}", "rate": "16000"}, [AUDIO, RATE])
    assert own["rate"] == 16000
    assert own["rate"].dtype == np.int32


def test_objects_in_an_array_file_are_never_loaded(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{}], object), allow_pickle=True)
    with pytest.raises(MediaInvalidError, match="without objects"):
        read_inputs({"audio": f"@{path}"}, [AUDIO])


@pytest.mark.parametrize("value", ["three", "1e999999999x", "99999999999"])
def test_what_is_no_number_of_the_port_is_refused(value):
    with pytest.raises(FieldInvalidError, match="rate"):
        read_inputs({"rate": value}, [RATE])


def test_a_file_of_unknown_kind_is_refused(tmp_path):
    with pytest.raises(FieldInvalidError, match="its kind is not known"):
        read_inputs({"audio": f"@{tmp_path / 'a.xyz'}"}, [AUDIO])
    (tmp_path / "a.md").write_text("words")
    assert read_inputs({"text": f"@{tmp_path / 'a.md'}"}, [TEXT]) == {"text": "words"}


def test_a_value_may_hold_the_sign_that_divides():
    assert pairs(["text=text:a=b"], "--input") == {"text": "text:a=b"}


def test_the_json_of_a_refusal_stays_off_standard_output(running):
    result = running.run("run", "--pipeline", "none", "--json")
    assert result.stdout == ""
    with pytest.raises(json.JSONDecodeError):
        json.loads(result.stderr)


def test_a_disk_that_fills_up_leaves_no_half_of_an_output(tmp_path):
    target = tmp_path / "out.npy"
    target.write_bytes(b"what was there")
    script = (
        "import resource, sys; import numpy as np; from pathlib import Path;"
        "from coordinator.cli.outputs import write;"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "write(Path(sys.argv[1]), [np.zeros(10_000)], None)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(target)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "DiskFullError" in result.stderr
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]
