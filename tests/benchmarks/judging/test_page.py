import pytest

from benchmarks.judging import page
from benchmarks.judging.page import BEGIN, END, PageBrokenError

pytestmark = pytest.mark.unit


def test_results_take_the_place_between_the_marks(make_record):
    text = f"# Page\n\n{BEGIN}\nold\n{END}\n\nThe rest.\n"

    assert page.insert(text, "new\n") == f"# Page\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe rest.\n"


def test_inserting_twice_changes_nothing(make_record):
    text = page.insert(f"{BEGIN}\n{END}\n", page.section(make_record()))

    assert page.insert(text, page.section(make_record())) == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}"])
def test_a_page_without_its_marks_is_refused(text):
    with pytest.raises(PageBrokenError):
        page.insert(text, "new")


def test_a_section_says_where_its_figures_come_from(make_record):
    text = page.section(make_record())

    assert "2026-01-02, commit `0123456789ab`; rounds: turn 5." in text
    assert "Abacus, cores 0, 1 of 2, 24 GiB; Linux 6." in text
    assert "numpy 2.4." in text
    assert '<source media="(prefers-color-scheme: dark)" srcset="plots/toy-dark.svg">' in text


def test_a_benchmark_without_a_kept_record_says_so(make_record):
    text = page.results(["toy", "other"], {"toy": make_record()}, [])

    assert text.index("### `toy`") < text.index("### `other`\n\nNo record is kept yet.")


def test_compared_settings_come_with_their_proof(make_record):
    knob = {"title": "variable NAME", "A": "1", "B": "2", "proof": "/proc/PID/environ"}

    text = page.results([], {}, [make_record(knob=knob)])

    assert "variable NAME: A is `1`, B is `2`. Proof: /proc/PID/environ." in text
