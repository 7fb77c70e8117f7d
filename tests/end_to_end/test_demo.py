"""The demos as a person starts them, with real models."""

import os
import subprocess
import sys

import pytest

from .conftest import READY_SECONDS, ROOT

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(2400)]


def demo(tmp_path, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "coordinator.cli.main", "demo", *arguments, "--yes"],
        cwd=tmp_path,
        env={**os.environ, "STAGEWIRE_STATE": str(tmp_path / "state"), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )


def test_the_demo_reads_a_page(tmp_path, leak_probe):
    result = demo(tmp_path, "page")
    assert result.returncode == 0, result.stderr[-4000:]
    assert "%  Region-based segmentation\n" in result.stdout
    assert "%  histogram of grey values:\n" in result.stdout
    assert "label: " in result.stdout
    assert "first line after " in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_demo_labels_a_photo_without_text(tmp_path, leak_probe):
    photo = ROOT / "samples" / "coffee.png"
    result = demo(tmp_path, "page", "--input", str(photo))
    assert result.returncode == 0, result.stderr[-4000:]
    assert "label: espresso (" in result.stdout
    assert "read: no text" in result.stdout
