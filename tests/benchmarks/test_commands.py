import json
import re
from dataclasses import replace

import pytest

from benchmarks import commands
from benchmarks.running import lock, preflight, results

pytestmark = pytest.mark.integration


@pytest.fixture
def bench(tmp_path, make_benchmark):
    def run(*words, benchmark=None):
        return commands.main(
            words,
            benchmarks={"toy": benchmark or make_benchmark()},
            lock_path=tmp_path / "lock",
            results_folder=tmp_path / "results",
        )

    return run


def records(tmp_path):
    return sorted((tmp_path / "results").rglob("*.json"))


def test_a_run_prints_its_verdict_and_writes_its_record(bench, tmp_path, capsys):
    assert bench("toy", "--busy") == commands.OK

    (path,) = records(tmp_path)
    assert path.parent.name == "runs"
    shown = capsys.readouterr()
    assert re.search(r"Time by floor +1\.00 +1\.00\.\.1\.00 +1\.50 +no difference +pass", shown.out)
    assert "turn 5/5: product time 1, floor time 1" in shown.err


def test_a_missed_limit_has_an_exit_code_of_its_own(bench, make_benchmark, make_arm):
    slow = make_benchmark(make_arm(time=2.0))

    assert bench("toy", "--busy", benchmark=slow) == commands.MISSED


def test_a_run_without_a_verdict_is_no_success(bench):
    assert bench("toy", "--busy", "--rounds", "2") == commands.OPEN


def test_an_arm_that_does_not_come_up_is_no_verdict(bench, make_benchmark, make_arm, capsys):
    broken = make_benchmark(make_arm(ready="sys.exit('broken')"))

    assert bench("toy", "--busy", benchmark=broken) == commands.OPEN
    assert "arm product does not come up" in capsys.readouterr().err


def test_a_second_run_at_once_is_told_who_measures(bench, tmp_path, capsys):
    with lock.held(tmp_path / "lock"):
        assert bench("toy", "--busy") == commands.HELD

    assert "measures since" in capsys.readouterr().err


def test_a_busy_machine_is_refused(bench, tmp_path, monkeypatch, capsys):
    # A threshold that every machine exceeds stands for a neighbour.
    monkeypatch.setattr("benchmarks.judging.quiet.BUSY_CORES", -1.0)
    monkeypatch.setattr(preflight, "WINDOW_SECONDS", 0.05)

    assert bench("toy") == commands.REFUSED

    assert not records(tmp_path)
    assert "--busy" in capsys.readouterr().err


def test_a_record_is_written_where_it_is_wanted_too(bench, tmp_path):
    bench("toy", "--busy", "--json", str(tmp_path / "mine.json"))

    (path,) = records(tmp_path)
    assert (tmp_path / "mine.json").read_text() == path.read_text()


def test_a_run_can_be_checked_against_the_last_kept_one(bench, tmp_path, make_record, capsys):
    assert bench("toy", "--busy", "--check") == commands.REFUSED
    kept = make_record({"product": [1.0] * 5, "floor": [1.0] * 5})
    results.keep(kept, tmp_path / "results")

    assert bench("toy", "--busy", "--check") == commands.OK
    assert "other machine" in capsys.readouterr().out


@pytest.mark.parametrize(("time", "code"), [(1.02, commands.OK), (1.4, commands.MISSED)])
def test_a_given_record_can_be_checked(bench, tmp_path, make_record, time, code):
    results.keep(make_record(), tmp_path / "results")
    given = tmp_path / "given.json"
    results.write_to(given, make_record({"product": [2 * time] * 5, "floor": [2.0] * 5}))

    assert bench("--check", str(given)) == code


def test_a_run_is_kept_by_hand(bench, tmp_path, make_record):
    path = results.write(make_record(), tmp_path / "results")

    assert bench("keep", str(path)) == commands.OK

    assert (tmp_path / "results" / "toy-2026-01-02.json").read_text() == path.read_text()


def test_a_run_of_uncommitted_code_is_not_kept(bench, tmp_path, make_record):
    record = make_record()
    dirty = replace(record, provenance={**record.provenance, "is_dirty": True})
    path = results.write(dirty, tmp_path / "results")

    assert bench("keep", str(path)) == commands.REFUSED


def test_the_page_gets_what_kept_records_give(bench, tmp_path, make_record):
    results.keep(make_record(), tmp_path / "results")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n{commands.page.BEGIN}\n{commands.page.END}\n")

    assert bench("report", "--page", str(page)) == commands.OK

    assert "### `toy`" in page.read_text()
    assert (tmp_path / "plots/toy-light.svg").exists()
    assert (tmp_path / "plots/toy-dark.svg").exists()


def test_settings_are_compared_from_the_command_line(bench, tmp_path, capsys):
    words = ("ab", "toy", "--env", "KNOB", "1", "2", "--busy")

    assert bench(*words) == commands.OK

    (path,) = records(tmp_path)
    assert path.name.startswith("ab-toy-")
    assert json.loads(path.read_text())["knob"]["proof"].startswith("/proc/PID/environ")
    assert "no difference" in capsys.readouterr().out


def test_a_setting_that_arrives_nowhere_is_refused(bench, tmp_path, capsys):
    words = ("ab", "toy", "--env", "KNOB", "1", "2", "--in", "workers", "--busy")

    assert bench(*words) == commands.REFUSED

    assert not records(tmp_path)
    assert "no process in the role 'workers'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["nothing"], ["toy", "--rounds", "x"], ["ab", "toy"]])
def test_wrong_usage_has_an_exit_code_of_its_own(bench, words):
    assert bench(*words) == commands.USAGE


def test_help_is_no_failure(bench):
    assert bench("--help") == commands.OK
