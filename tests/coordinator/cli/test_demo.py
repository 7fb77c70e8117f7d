"""The demo with pretended stages: what it says and leaves, and what it refuses at once."""

import re
import signal
import wave
from pathlib import Path

import numpy as np
import pytest

from coordinator.cli.demo_state import demo_state
from coordinator.cli.screen import Screen
from coordinator.facts.sizes import parse_size
from stagewire.client import write_wav
from stagewire.errors import ExitCode, WorkerStartError

from .conftest import Terminal, wait_until_gone

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]


def assert_nothing_is_left(program):
    assert list(program.temporary.iterdir()) == []
    assert not program.state.exists(), "the demo has a state folder of its own"


def executable(folder, name, body):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def test_the_demo_answers_and_leaves_nothing_running(program):
    result = program.run("demo", "--fake", PATH="/nonexistent")
    assert result.returncode == 0, result.stderr
    assert "(synthetic: no person said it)" in result.stderr
    for part in (
        "heard: fake.",
        "answer: fake.",
        "speak     speech  cpu",
        "memory / budget",
        "first audio after ",
        "was pretended",
        f"reply: {program.root / 'reply-fake.wav'}",
    ):
        assert part in result.stdout
    with wave.open(str(program.root / "reply-fake.wav")) as reply:
        assert (reply.getframerate(), reply.getnchannels()) == (22_050, 1)
    assert_nothing_is_left(program)


def test_the_demo_is_that_of_the_voice_unless_another_is_named(program):
    named = program.run("demo", "voice", "--fake", "--output", "named.wav")
    assert named.returncode == 0, named.stderr
    assert f"reply: {program.root / 'named.wav'}" in named.stdout


def test_the_demo_without_speech_prints_the_answer_only(program):
    result = program.run("demo", "--fake", "--no-speech")
    assert result.returncode == 0, result.stderr
    assert "answer: fake." in result.stdout
    assert "speech" not in result.stdout
    assert not (program.root / "reply-fake.wav").exists()


def test_the_demo_shows_a_table_that_moves_on_a_terminal(program):
    terminal = Terminal(program, "demo", "--fake", "--output", "spoken.wav")
    assert terminal.end() == 0
    assert "\x1b[" in terminal.output
    assert "heard: fake." in terminal.output
    assert (program.root / "spoken.wav").exists()


def test_the_demo_names_sizes_and_licences_and_a_person_may_say_no(program):
    terminal = Terminal(
        program, "demo", UV_OFFLINE="1", UV_CACHE_DIR=str(program.root / "uv"), COLUMNS="240"
    )
    terminal.wait_for("Download it?")
    terminal.type("n\n")
    assert terminal.end() == ExitCode.REFUSED
    for part in ("GPL-3.0", "whisper-base", "MiB", "as you asked"):
        assert part in terminal.output
    assert_nothing_is_left(program)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("song.mp3", b"ID3" + bytes(100), "MP3 audio"),
        ("empty.wav", b"", "an empty file"),
        ("words.wav", b"some words", "text, not WAV"),
    ],
)
def test_a_question_that_is_no_audio_is_refused_before_anything_starts(
    program, name, content, says
):
    (program.root / name).write_bytes(content)
    result = program.run("demo", "--fake", "--input", name)
    assert result.returncode == ExitCode.REFUSED
    assert "MEDIA_INVALID: " in result.stderr
    assert says in result.stderr
    assert "starting" not in result.stdout + result.stderr
    assert_nothing_is_left(program)


def test_a_question_without_samples_is_refused(program):
    with wave.open(str(program.root / "none.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
    result = program.run("demo", "--fake", "--input", "none.wav")
    assert result.returncode == ExitCode.REFUSED
    assert "has no samples" in result.stderr


@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_a_question_over_the_limit_of_the_plan_is_refused_at_any_rate(program, rate):
    write_wav(program.root / "long.wav", np.zeros(61 * rate, np.float32), rate)
    result = program.run("demo", "--fake", "--input", "long.wav")
    assert result.returncode == ExitCode.REFUSED
    assert "long.wav is 61.0 s long; the plan takes 60 s" in result.stderr


def test_a_reply_that_cannot_be_written_is_refused_before_anything_starts(program):
    result = program.run("demo", "--fake", "--output", "no/such/folder.wav")
    assert result.returncode == ExitCode.REFUSED
    assert "PATH_FORBIDDEN: " in result.stderr
    assert "starting" not in result.stdout + result.stderr


def test_a_kept_demo_is_asked_again_and_stopped_with_ctrl_c(program):
    demo = program.start("demo", "--fake", "--keep", "--state", program.state)
    command = demo.wait_for("  coordinator run ").split()[1:]
    workers = demo.children()

    again = program.run(*command)

    assert again.returncode == 0, again.stderr
    assert (program.root / "again.wav").exists()
    demo.send(signal.SIGINT)
    assert demo.end() == 0
    wait_until_gone(workers)


def test_a_second_ctrl_c_ends_the_demo_at_once_and_takes_its_folder_along(program):
    demo = program.start("demo", "--fake", "--keep")
    demo.wait_for("  coordinator run ")
    workers = demo.children()
    # What is stopped does not leave: the first Ctrl-C alone would take its time.
    for worker in workers:
        worker.suspend()
    demo.send(signal.SIGINT)
    demo.wait_for("once more to stop at once")
    assert list(program.temporary.iterdir())

    demo.send(signal.SIGINT)

    assert demo.end() == ExitCode.INTERRUPTED
    wait_until_gone(workers)
    assert_nothing_is_left(program)


def test_the_reply_is_played_by_the_player_that_is_there(program):
    tools = program.root / "tools"
    executable(tools, "aplay", f'/bin/echo "$@" > {program.root}/played')
    executable(tools, "wslpath", 'echo "\\\\\\\\wsl$\\\\reply.wav"')
    result = program.run("demo", "--fake", "--play", PATH=str(tools))
    assert result.returncode == 0, result.stderr
    assert "played with aplay" in result.stdout
    assert (program.root / "played").read_text() == f"-q {program.root / 'reply-fake.wav'}\n"
    assert "wsl$" in result.stdout


def test_without_a_player_the_demo_says_so(program):
    result = program.run("demo", "--fake", "--play", PATH="/nonexistent")
    assert result.returncode == 0, result.stderr
    assert "no player found; install one of paplay, aplay, pw-play, ffplay" in result.stdout


@pytest.mark.parametrize("name", ["reply.mp3", "reply", "reply.wav.npy"])
def test_a_reply_that_is_named_as_something_else_is_refused(program, name):
    result = program.run("demo", "--fake", "--output", program.root / name)

    assert result.returncode == ExitCode.REFUSED
    assert ".wav" in result.stderr
    assert not list(program.root.glob("reply*"))


def test_memory_may_be_limited_as_for_up(program):
    result = program.run("demo", "--fake", "--ram", "900MiB")
    assert result.returncode == ExitCode.REFUSED
    assert "which allows 900.0 MiB" in result.stderr
    assert_nothing_is_left(program)


@pytest.fixture
def offline(program):
    """What fails after the start: everything has to be fetched, and nothing can be."""
    return {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(program.root / "uv")}


def test_a_demo_that_fails_leaves_its_logs_where_it_says_and_nothing_else(program, offline):
    kept = program.state / "demo-logs"
    for _ in range(2):
        result = program.run("demo", **offline)
        assert result.returncode == ExitCode.FAULT, result.stderr
        assert f"the logs of this demo are kept in {kept}\n" in result.stderr
        assert [path.name for path in kept.iterdir()] == ["coordinator.log"]
        assert list(program.temporary.iterdir()) == []
    assert kept.stat().st_mode & 0o077 == 0
    assert program.state.stat().st_mode & 0o077 == 0, "a coordinator may use it afterwards"


def fail(folder):
    (folder / "logs").mkdir()
    (folder / "logs" / "cpu.log").write_text("why")
    error = WorkerStartError(f"see {folder}/logs/cpu.log")
    error.add_note(f"the end of {folder}/logs/cpu.log:\nwhy")
    raise error


def test_a_failure_names_the_logs_where_they_are_kept(program, monkeypatch):
    monkeypatch.setenv("STAGEWIRE_STATE", str(program.state))
    with pytest.raises(WorkerStartError) as failure, demo_state(None, Screen()) as folder:
        fail(folder)
    kept = program.state / "demo-logs" / "cpu.log"
    assert kept.read_text() == "why"
    assert failure.value.message == f"see {kept}"
    assert failure.value.__notes__ == [f"the end of {kept}:\nwhy"]


def test_every_text_has_the_size_that_is_asked_for(program, offline):
    result = program.run("demo", **offline)
    (total,) = re.findall(r"^together, at most +(.+iB)", result.stderr, re.MULTILINE)
    size_bytes = parse_size(total)
    on_disk = parse_size(re.findall(r"up to (.+iB) in all", result.stderr)[0])
    assert on_disk == pytest.approx(2 * size_bytes, rel=0.1)
    for name in ("run", "README.md", "docs/testing.md"):
        sizes = re.findall(r"about ([\d.]+ [KMG]i?B) once", (ROOT / name).read_text())
        assert sizes == [f"{size_bytes / 1e9:.1f} GB"], name


def test_what_is_pretended_says_so_and_replaces_no_real_reply(program):
    (program.root / "reply.wav").write_bytes(b"a real one")
    result = program.run("demo", "--fake")
    assert result.returncode == 0
    assert "Every stage was pretended (--fake)" in result.stdout
    assert (program.root / "reply.wav").read_bytes() == b"a real one"


def test_a_reply_never_takes_the_place_of_its_question(program):
    question = program.root / "question.wav"
    question.write_bytes((SAMPLES / "question.wav").read_bytes())
    before = question.read_bytes()
    (program.root / "same.wav").symlink_to(question)
    for name in ("question.wav", "same.wav"):
        result = program.run("demo", "--fake", "--input", question, "--output", name)
        assert result.returncode == ExitCode.REFUSED
        assert "take the place of the question" in result.stderr
    assert question.read_bytes() == before


@pytest.mark.parametrize("option", [["--output", "a.wav"], ["--play"]])
def test_an_option_that_would_do_nothing_is_wrong_usage(program, option):
    result = program.run("demo", "--fake", "--no-speech", *option)
    assert result.returncode == ExitCode.USAGE
    assert option[0] in result.stderr
