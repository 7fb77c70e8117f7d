"""Several processes at one cache, and processes that die."""

import os
import threading

import psutil
import pytest

from coordinator.artifacts.progress import Phase
from coordinator.artifacts.store import ArtifactStatus
from stagewire.errors import ArtifactMissingError

pytestmark = pytest.mark.integration

CONTENT = os.urandom(3 << 20)


def wheel_artifact(bench, index):
    source = index.add("first", {"first/model": CONTENT})
    return bench.make({"m": (bench.sha256(CONTENT), len(CONTENT), [f"{source}first/model"])})


def test_two_processes_that_pull_at_once_fetch_once_and_both_succeed(bench, index):
    artifact = wheel_artifact(bench, index)
    index.may_go_on.clear()
    first = bench.start(artifact)
    assert index.has_begun.wait(100)
    second = bench.start(artifact, "wait:waiting")
    assert second.stdout.readline() == "reached\n"

    index.may_go_on.set()

    for process in (first, second):
        output, _ = process.communicate(timeout=100)
        assert process.returncode == 0
        assert output == "pulled\n"
    assert index.downloads == ["first"]
    assert bench.store.verify(artifact) == []
    assert len(bench.store.entries()) == 1


def test_two_artifacts_with_the_same_file_are_pulled_at_once_without_harm(bench):
    bench.local(CONTENT, path="one.bin")
    artifacts = [bench.local(CONTENT, path="one.bin"), bench.local(CONTENT, path="two.bin")]
    processes = [bench.start(artifact, "hold:storing") for artifact in artifacts]
    for process in processes:
        assert process.stdout.readline() == "reached\n"
    for process in processes:
        output, _ = process.communicate("go on\n", timeout=100)
        assert output == "pulled\n"
    for artifact in artifacts:
        assert bench.store.verify(artifact) == []
        assert next(iter(bench.store.materialize(artifact).values())).read_bytes() == CONTENT
    for artifact in artifacts:
        bench.pull(artifact)
    assert bench.stored(artifacts[0]).stat().st_nlink == 3


def test_a_pull_waits_for_another_and_says_so(bench):
    artifact = bench.local(CONTENT)
    other = bench.start(artifact, "hold:storing")
    assert other.stdout.readline() == "reached\n"
    waits = threading.Event()
    reports = []

    def report(progress):
        reports.append(progress.phase)
        if progress.phase is Phase.WAITING:
            waits.set()

    thread = threading.Thread(
        target=bench.store.pull, args=(artifact, bench.base, report), daemon=True
    )
    thread.start()
    assert waits.wait(100)
    other.communicate("go on\n", timeout=100)
    thread.join(100)
    assert not thread.is_alive()
    # It found everything done.
    assert Phase.STORING not in reports


def test_a_killed_pull_leaves_nothing_that_counts_as_cached(bench):
    artifact = bench.local(CONTENT)
    process = bench.start(artifact, "hold:storing")
    assert process.stdout.readline() == "reached\n"

    bench.end(process)

    left = bench.everything()
    assert left
    assert all(path.startswith("staging/") for path in left)
    assert bench.store.status(artifact) is ArtifactStatus.MISSING
    assert bench.store.entries() == []
    with pytest.raises(ArtifactMissingError):
        bench.store.materialize(artifact)
    bench.pull(artifact)
    assert bench.store.verify(artifact) == []
    assert not any(path.startswith("staging/") for path in bench.everything())


def test_what_a_killed_pull_left_is_removed_by_the_next_pull_of_anything(bench):
    killed = bench.local(CONTENT, path="one.bin")
    other = bench.local(b"small", path="two.bin")
    process = bench.start(killed, "hold:storing")
    assert process.stdout.readline() == "reached\n"

    # A living one keeps what it works on.
    bench.pull(other)
    assert any(path.startswith("staging/") for path in bench.everything())
    bench.end(process)
    bench.pull(other)
    assert not any(path.startswith("staging/") for path in bench.everything())


def test_a_killed_download_takes_uv_with_it_and_leaves_nothing(bench, index):
    artifact = wheel_artifact(bench, index)
    index.may_go_on.clear()
    process = bench.start(artifact)
    assert index.has_begun.wait(100)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children

    bench.end(process)

    _, alive = psutil.wait_procs(children, timeout=100)
    assert not alive
    assert bench.store.status(artifact) is ArtifactStatus.MISSING
    assert bench.store.entries() == []
    index.may_go_on.set()
    bench.pull(artifact)
    assert bench.store.verify(artifact) == []
    assert not any(path.startswith("staging/") for path in bench.everything())
