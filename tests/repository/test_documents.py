"""Documents keep their form."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs/adr").glob("*.md"))
LINES_OF_A_PAGE = 60


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_form_and_fits_one_page(path):
    text = path.read_text(encoding="utf-8")
    number = path.name[:4]
    assert re.match(
        rf"# {number}: .+\n\nDate: \d{{4}}-\d\d-\d\d\. State: (proposed|accepted|replaced by)", text
    )
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == ["Problem", "Decision", "Options", "Consequences"]
    assert "* Bad: " in text, "each decision costs something"
    assert len(text.splitlines()) <= LINES_OF_A_PAGE


def test_numbers_of_decisions_are_unique():
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(numbers) == len(set(numbers))


def test_the_style_page_stays_short():
    assert len((ROOT / "docs/style.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_glossary_gives_each_word_one_meaning():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| \*\*([^*]+)\*\*", text, flags=re.MULTILINE)
    words = [word for cell in cells for word in cell.split(", ")]
    assert len(words) == len(set(words))


def test_the_changelog_begins_with_what_is_unreleased():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[(.+?)\]", text, flags=re.MULTILINE).group(1) == "Unreleased"


def test_contributors_are_told_of_every_task_that_they_need():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for task in ("check", "fix", "test", "end-to-end", "protos", "docs"):
        assert f"`uv run poe {task}`" in text
