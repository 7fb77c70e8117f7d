"""The committed page has what the committed records give."""

import pytest

from benchmarks import commands
from benchmarks.judging import page
from benchmarks.running import results
from benchmarks.suite import BENCHMARKS

pytestmark = pytest.mark.unit


def test_the_page_is_what_the_records_give():
    text = commands.PAGE.read_text(encoding="utf-8")
    given = page.results(list(BENCHMARKS), results.latest(), results.compared())

    assert page.insert(text, given) == text, "run: uv run poe bench report"


def test_the_plots_are_what_the_records_give():
    drawn = commands.charts(results.latest())
    folder = commands.PAGE.parent

    committed = {f"plots/{path.name}": path.read_text() for path in folder.glob("plots/*.svg")}
    assert committed == drawn, "run: uv run poe bench report"


def test_kept_records_are_of_committed_code_and_of_benchmarks_that_exist():
    for record in results.kept():
        assert not record.provenance["is_dirty"]
        assert record.bench in BENCHMARKS
