import json
import os
import re

import pytest

from coordinator.artifacts.inspection import ProblemKind
from coordinator.artifacts.progress import Phase
from coordinator.artifacts.store import ArtifactStatus, ArtifactStore
from stagewire.errors import (
    ArtifactCorruptError,
    ArtifactMissingError,
    ArtifactUnavailableError,
    PathForbiddenError,
)

pytestmark = pytest.mark.integration

CONTENT = os.urandom(3 << 20)


def flip_bit(path, position=12345):
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[position] ^= 0b100
    # In place: the name in the artifact's folder shares the bytes.
    with path.open("r+b") as stream:
        stream.write(content)


def test_a_local_file_is_copied_into_the_cache_and_shown_under_its_name(bench):
    artifact = bench.local(CONTENT, path="data/model.bin")
    assert bench.store.status(artifact) is ArtifactStatus.MISSING
    assert bench.store.missing_bytes(artifact) == len(CONTENT)

    bench.pull(artifact)

    assert bench.store.status(artifact) is ArtifactStatus.PRESENT
    assert bench.store.missing_bytes(artifact) == 0
    paths = bench.store.materialize(artifact)
    assert list(paths) == ["data/model.bin"]
    assert paths["data/model.bin"] == bench.store.folder(artifact) / "data/model.bin"
    assert paths["data/model.bin"].read_bytes() == CONTENT
    assert bench.store.verify(artifact) == []


def test_the_cache_keeps_each_content_once(bench):
    first = bench.local(CONTENT, path="one.bin", name="first")
    second = bench.local(CONTENT, path="two.bin", name="second")
    bench.pull(first)
    assert bench.store.status(second) is ArtifactStatus.PRESENT

    path = bench.store.materialize(second)["two.bin"]

    assert path.samefile(bench.stored(first))
    assert bench.store.materialize(first)["one.bin"].samefile(path)


def test_the_cache_does_without_the_source_afterwards(bench):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    (bench.base / "model.bin").unlink()
    bench.pull(artifact, is_network_allowed=False)
    assert bench.store.materialize(artifact)["model.bin"].read_bytes() == CONTENT


def test_progress_runs_from_the_first_to_the_last_byte(bench):
    reports = bench.pull(bench.local(CONTENT))
    stored = [report for report in reports if report.phase is Phase.STORING]
    assert [report.done_bytes for report in stored] == [0, 1 << 20, 2 << 20, 3 << 20]
    assert {(str(r.artifact), r.file, r.total_bytes) for r in stored} == {
        ("model", "model.bin", len(CONTENT))
    }


def test_a_report_that_raises_ends_the_pull_and_leaves_nothing(bench):
    artifact = bench.local(CONTENT)

    def stop(progress):
        if progress.done_bytes > 1 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.store.pull(artifact, bench.base, stop)

    assert bench.everything() == set()
    bench.pull(artifact)


def test_one_flipped_bit_is_refused_before_a_load_and_mended_by_a_pull(bench):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    flip_bit(bench.stored(artifact))

    with pytest.raises(ArtifactCorruptError, match=r"model\.bin"):
        bench.store.materialize(artifact)
    assert [problem.kind for problem in bench.store.verify(artifact)] == [ProblemKind.CORRUPT]

    bench.pull(artifact)
    assert bench.store.verify(artifact) == []
    assert bench.store.materialize(artifact)["model.bin"].read_bytes() == CONTENT


def test_a_truncated_file_is_corrupt_at_a_glance(bench):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    bench.stored(artifact).chmod(0o644)
    os.truncate(bench.stored(artifact), 1000)

    assert bench.store.status(artifact) is ArtifactStatus.CORRUPT
    assert bench.store.missing_bytes(artifact) == len(CONTENT)
    with pytest.raises(ArtifactCorruptError):
        bench.store.materialize(artifact)
    bench.pull(artifact)
    assert bench.store.status(artifact) is ArtifactStatus.PRESENT


def test_a_file_put_in_place_of_the_shown_one_is_refused_and_mended(bench):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    shown = bench.store.folder(artifact) / "model.bin"
    shown.unlink()
    shown.write_bytes(CONTENT[::-1])

    with pytest.raises(ArtifactCorruptError):
        bench.store.materialize(artifact)
    assert [problem.kind for problem in bench.store.verify(artifact)] == [ProblemKind.CORRUPT]
    bench.pull(artifact)
    assert bench.store.verify(artifact) == []


@pytest.mark.parametrize("make", ["symlink", "fifo", "folder", "hard link"])
@pytest.mark.timeout(60)
def test_what_is_no_file_of_the_cache_is_refused_and_mended(bench, make):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    shown = bench.store.folder(artifact) / "model.bin"
    outside = bench.base / "model.bin"
    shown.unlink()
    {
        "symlink": lambda: shown.symlink_to(outside),
        "fifo": lambda: os.mkfifo(shown),
        "folder": shown.mkdir,
        "hard link": lambda: os.link(outside, shown),
    }[make]()

    with pytest.raises(PathForbiddenError):
        bench.store.materialize(artifact)
    assert [problem.kind for problem in bench.store.verify(artifact)] == [ProblemKind.FORBIDDEN]
    bench.pull(artifact)
    assert bench.store.verify(artifact) == []


def test_what_stands_in_the_place_of_a_stored_file_is_replaced(bench):
    artifact = bench.local(CONTENT)
    bench.stored(artifact).mkdir(parents=True)
    assert bench.store.status(artifact) is ArtifactStatus.CORRUPT
    with pytest.raises(PathForbiddenError):
        bench.store.materialize(artifact)
    bench.pull(artifact)
    assert bench.store.verify(artifact) == []


def test_what_was_never_pulled_is_missing(bench):
    artifact = bench.local(CONTENT)
    with pytest.raises(ArtifactMissingError, match="coordinator artifacts pull"):
        bench.store.materialize(artifact)
    assert [problem.kind for problem in bench.store.verify(artifact)] == [ProblemKind.MISSING]
    assert bench.store.entries() == []


@pytest.mark.parametrize("size", [True, False])
@pytest.mark.parametrize("change", ["flipped", "truncated", "longer", "empty"])
def test_a_source_with_other_bytes_is_refused_and_leaves_nothing(bench, change, size):
    artifact = bench.local(CONTENT, size=size)
    source = bench.base / "model.bin"
    {
        "flipped": lambda: flip_bit(source),
        "truncated": lambda: os.truncate(source, len(CONTENT) - 1),
        "longer": lambda: source.write_bytes(CONTENT + b"x"),
        "empty": lambda: source.write_bytes(b""),
    }[change]()

    with pytest.raises(ArtifactCorruptError, match=r"file:model\.bin"):
        bench.pull(artifact)

    assert bench.everything() == set()
    assert bench.store.status(artifact) is ArtifactStatus.MISSING


def test_a_source_far_above_its_size_is_not_copied_to_its_end(bench):
    artifact = bench.local(CONTENT)
    os.truncate(bench.base / "model.bin", 1 << 40)
    with pytest.raises(ArtifactCorruptError, match=f"more than the {len(CONTENT)} bytes"):
        bench.pull(artifact)


def test_an_absent_source_is_named(bench):
    artifact = bench.local(CONTENT)
    (bench.base / "model.bin").unlink()
    with pytest.raises(ArtifactUnavailableError, match=re.escape("file:model.bin")):
        bench.pull(artifact)
    assert bench.everything() == set()


@pytest.mark.parametrize("make", ["symlink", "fifo", "hard link"])
@pytest.mark.timeout(60)
def test_a_source_that_is_no_plain_file_is_refused(bench, tmp_path, make):
    artifact = bench.local(CONTENT)
    source = bench.base / "model.bin"
    source.rename(tmp_path / "elsewhere")
    {
        "symlink": lambda: source.symlink_to(tmp_path / "elsewhere"),
        "fifo": lambda: os.mkfifo(source),
        "hard link": lambda: os.link(tmp_path / "elsewhere", source),
    }[make]()
    with pytest.raises(PathForbiddenError):
        bench.pull(artifact)
    assert bench.everything() == set()


def test_the_list_tells_what_was_pulled_whole(bench):
    first = bench.local(CONTENT, path="one.bin", name="b")
    renamed = bench.local(CONTENT, path="one.bin", name="a")
    second = bench.local(b"small", path="two.bin", name="c")
    for artifact in (first, renamed, second):
        bench.pull(artifact)

    entries = bench.store.entries()

    assert [entry.ids for entry in entries] == [("a", "b"), ("c",)]
    assert [entry.size_bytes for entry in entries] == [len(CONTENT), 5]
    assert entries[1].files == (("two.bin", second.files[0].sha256, 5),)
    assert (entries[1].format, entries[1].licence) == ("test:raw", "MIT")
    assert entries[1].digest == second.digest


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"digest": "x"})])
def test_a_damaged_record_is_told_and_mended_by_a_pull(bench, text):
    artifact = bench.local(CONTENT)
    bench.pull(artifact)
    (bench.root / "artifacts" / f"{artifact.digest}.json").write_text(text)
    with pytest.raises(ArtifactCorruptError, match="record"):
        bench.store.entries()
    bench.pull(artifact)
    assert len(bench.store.entries()) == 1


def test_files_are_shown_without_links_where_the_cache_lies_behind_one(bench, tmp_path):
    # The kernel names what a worker maps by its true path; its memory is found by that name.
    artifact = bench.local()
    bench.pull(artifact)
    (tmp_path / "link").symlink_to(bench.root)

    store = ArtifactStore(tmp_path / "link")

    for path in (store.root, store.folder(artifact), *store.materialize(artifact).values()):
        assert path == path.resolve()
        assert path.exists()
