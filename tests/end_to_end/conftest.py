"""Coordinators that run our plans with their real models, as people start them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stagewire.client import Client, connect

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = Path("/usr/share/pocketsphinx/test/data/librivox")
READY_SECONDS = 1500.0
"""Building environments and fetching models on a slow machine included."""


@contextmanager
def running(plan: str, state: Path) -> Iterator[Client]:
    """Starts a coordinator with a plan of ours, yields a client of it, and stops it."""
    log = state / "up.log"
    command = [sys.executable, "-m", "coordinator.cli.main", "up", "--yes"]
    command += ["--plan", str(ROOT / "plans" / plan), "--state", str(state)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "READY" in line:
                    break
            else:
                pytest.fail(f"the coordinator ended: {log.read_text()[-4000:]}")
            with connect(state=state) as client:
                yield client
        finally:
            process.terminate()
            rest, _ = process.communicate(timeout=120)
    assert process.returncode == 0, f"{rest[-2000:]}\n{log.read_text()[-4000:]}"


@pytest.fixture(scope="session")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running("voice.yaml", tmp_path_factory.mktemp("state")) as client:
        yield client


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running("page.yaml", tmp_path_factory.mktemp("state")) as client:
        yield client


@pytest.fixture(scope="module")
def label(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running("label.yaml", tmp_path_factory.mktemp("state")) as client:
        yield client


@pytest.fixture(scope="session")
def recordings() -> dict[Path, str]:
    """Five recordings of a person, by file, with what is read (Debian: pocketsphinx-testdata)."""
    lines = (RECORDINGS / "transcription").read_text().splitlines()
    texts = {}
    for line in lines:
        match = re.fullmatch(r"(?:<s>)?\s*(.*?)\s*(?:</s>)?\s*\((\S+)\)", line.strip())
        assert match is not None, line
        texts[RECORDINGS / f"{match[2]}.wav"] = match[1]
    return texts
