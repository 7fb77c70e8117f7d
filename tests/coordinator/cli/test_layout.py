"""Text for a width: whole words, whole columns, nothing wider than there is room."""

import pytest

from coordinator.cli.layout import Prose, laid_out, wrapped
from stagewire.client import Table

pytestmark = pytest.mark.unit
PROSE = "the answer is a long sentence, whose words are of ordinary length and stay whole. " * 5
PATH = "/a/very/long/path/" + "of-a-folder/" * 10
WIDE = Table(
    ("stage", "executor", "kind", "why", "proof"),
    tuple((f"stage{n}", "llamacpp", "cpu", PROSE[n : n + 60].strip(), "full B") for n in range(6)),
)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_prose_is_broken_between_words_and_stays_within_the_width(width):
    lines = wrapped(PROSE.strip(), width).split("\n")
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split() == PROSE.split()


def test_an_indent_is_kept_and_short_lines_are_left_as_they_are():
    text = f"  name   size\n  {PROSE.strip()}\n\nend"
    first, *middle, blank, last = wrapped(text, 40).split("\n")
    assert (first, blank, last) == ("  name   size", "", "end")
    assert all(line.startswith("  ") and len(line) <= 40 for line in middle)


def test_what_is_copied_stays_whole():
    assert PATH in wrapped(f"it lies in {PATH}", 40)


def test_nothing_changes_where_there_is_no_width():
    assert wrapped(PROSE, None) == PROSE
    assert laid_out(WIDE) == str(WIDE).splitlines()


@pytest.mark.parametrize("pieces", [1, 2, 5, 1000])
@pytest.mark.parametrize("width", [20, 80])
def test_prose_that_comes_in_pieces_is_broken_like_any_other(pieces, width):
    flow, size = Prose(width), max(1, len(PROSE) // pieces)
    shown = "".join(flow.take(PROSE[i : i + size]) for i in range(0, len(PROSE), size))
    shown += flow.end()
    assert max(len(line.rstrip()) for line in shown.split("\n")) <= width
    assert shown.split() == PROSE.split()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_table_stays_within_the_width_and_breaks_no_word(width):
    lines = laid_out(WIDE, width)
    assert max(map(len, lines)) <= width
    words = {word for row in (WIDE.columns, *WIDE.rows) for cell in row for word in cell.split()}
    assert {word for line in lines for word in line.split()} <= words


def test_what_matters_least_is_left_out_and_comes_back_with_the_room():
    assert laid_out(WIDE, 200)[0].split() == [*WIDE.columns]
    assert laid_out(WIDE, 50)[0].split() == ["stage", "kind", "why", "proof"]
    assert laid_out(WIDE, 42)[0].split() == ["stage", "why", "proof"]


def test_columns_of_prose_alone_share_the_width():
    table = Table(("a", "b", "c"), ((PROSE, PROSE, PROSE),))
    lines = laid_out(table, 80)
    assert 70 < max(map(len, lines)) <= 80
