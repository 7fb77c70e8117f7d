import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.judging.record import RecordUnreadableError
from benchmarks.running import results
from benchmarks.running.provenance import ROOT

pytestmark = pytest.mark.integration


def test_every_run_writes_a_record_that_can_be_read(make_record, tmp_path):
    record = make_record()

    path = results.write(record, tmp_path)

    assert path == tmp_path / "runs" / "toy-20260102T030405.json"
    assert results.read(path) == record


def test_kept_records_are_named_by_benchmark_and_date(make_record, tmp_path):
    paths = [results.keep(make_record(), tmp_path) for _ in range(2)]

    assert [path.name for path in paths] == ["toy-2026-01-02.json", "toy-2026-01-02-2.json"]


@pytest.mark.parametrize("origin", [{"is_dirty": True, "commit": "1"}, {"is_dirty": False}])
def test_what_no_commit_has_is_not_kept(make_record, tmp_path, origin):
    with pytest.raises(results.NotKeptError, match="commit first"):
        results.keep(make_record(provenance=origin), tmp_path)

    assert not list(tmp_path.iterdir())


def test_the_last_kept_record_counts(make_record, tmp_path):
    old, new = make_record(), make_record(started="2026-02-01T00:00:00+00:00")
    results.keep(new, tmp_path)
    results.keep(old, tmp_path)

    assert results.latest(tmp_path) == {"toy": new}


def test_compared_settings_are_no_record_of_the_benchmark(make_record, tmp_path):
    knob = {"title": "revision", "A": "x", "B": "y", "proof": "import paths"}
    old = make_record(knob=knob)
    new = replace(old, started="2026-02-01T00:00:00+00:00")
    for record in (old, new):
        results.keep(record, tmp_path)

    assert results.latest(tmp_path) == {}
    assert results.compared(tmp_path) == (new,)
    assert (tmp_path / "ab-toy-2026-01-02.json").exists()


def test_a_record_names_no_folder_of_the_machine(make_record, tmp_path):
    record = make_record(
        facts={"product": {"code": {"stagewire": str(ROOT / "sdk/stagewire/__init__.py")}}},
        notes=(f"{ROOT} and {Path.home()}/.cache",),
    )

    content = json.loads(results.write(record, tmp_path).read_text())

    assert content["facts"]["product"]["code"]["stagewire"] == "sdk/stagewire/__init__.py"
    assert content["notes"] == [". and ~/.cache"]


def test_a_file_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "toy.json"
    path.write_text("{}")

    with pytest.raises(RecordUnreadableError, match=r"toy\.json"):
        results.kept(tmp_path)
