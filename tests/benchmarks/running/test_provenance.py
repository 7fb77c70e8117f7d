import os
import subprocess

import pytest

from benchmarks.running import provenance

pytestmark = pytest.mark.integration


def test_a_record_says_what_figures_depend_on(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("STAGEWIRE_TOKEN", "secret")
    monkeypatch.setenv("UNRELATED", "1")

    found = provenance.gather()

    assert found["affinity"] == sorted(os.sched_getaffinity(0))
    assert found["processor"]
    assert found["versions"].keys() >= {"python", "grpcio", "numpy", "protobuf"}
    assert found["variables"]["OMP_NUM_THREADS"] == "3"
    assert not {"STAGEWIRE_TOKEN", "UNRELATED"} & found["variables"].keys()


def test_changes_of_pages_tests_and_results_change_no_figure(tmp_path):
    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("config", "user.email", "somebody@example.org")
    git("config", "user.name", "Somebody")
    for name in ("docs/page.md", "tests/test_it.py", "benchmarks/results/x.json", "code.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    git("add", ".")
    git("commit", "-m", "All")

    for name in ("docs/page.md", "tests/test_it.py", "benchmarks/results/x.json"):
        (tmp_path / name).write_text("2")
    assert not provenance.is_dirty(tmp_path)

    (tmp_path / "code.py").write_text("2")
    assert provenance.is_dirty(tmp_path)


def test_outside_of_a_repository_there_is_no_commit(tmp_path):
    assert provenance.git("rev-parse", "HEAD", folder=tmp_path) == ""
