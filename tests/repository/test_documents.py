"""Documents keep their form."""

import re
from pathlib import Path

import pytest
import tomllib

from testkit.snippets import PAGES

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/adr/README.md"
DECISIONS = sorted(set((ROOT / "docs/adr").glob("*.md")) - {INDEX})
LINES_OF_A_PAGE = 60
TOP_FOLDERS = "benchmarks|coordinator|docs|plans|protos|samples|sdk|tests|workers"
PATH = re.compile(rf"(?<![\w./-])(?:{TOP_FOLDERS})/[\w./-]+")
MADE_UP = {"workers/glossary", "tests/test_conformance.py"}
"""Of the example in docs/adding-an-executor.md."""


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


def test_the_index_of_decisions_names_each_number_once_and_those_to_come():
    rows = re.findall(
        r"^\| (?:\[(\d{4})\]\(([\w.-]+)\)|(\d{4})) \| (.+?) \|$",
        INDEX.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    linked = {number: (name, title) for number, name, _, title in rows if number}
    assert linked == {
        path.name[:4]: (path.name, path.read_text(encoding="utf-8").partition("\n")[0][8:])
        for path in DECISIONS
    }
    to_come = [number for _, _, number, _ in rows if number]
    numbers = sorted([*linked, *to_come])
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page):
    # A link is relative to its page; `test_hygiene.py` follows those.
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text(encoding="utf-8"))
    names = {name.rstrip("./") for name in PATH.findall(text)}
    # `WORKER` stands for a name that the reader puts there.
    certain = {name for name in names if "WORKER" not in name}
    assert not [name for name in certain - MADE_UP if not (ROOT / name).exists()]


@pytest.mark.parametrize("worker", ["cpu", "speech"])
def test_the_readme_has_the_python_versions_of_a_worker(worker):
    project = tomllib.loads((ROOT / f"workers/{worker}/pyproject.toml").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if line.startswith(f"| `{worker}` |"))
    assert f"| {versions(project)} |" in row
    page = (ROOT / f"docs/workers/{worker}.md").read_text(encoding="utf-8")
    assert f"Python {versions(project)}" in page


def test_the_readme_has_the_python_versions_of_the_coordinator():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Linux and Python {versions(project)}" in readme


def versions(project: dict) -> str:
    """Returns the versions that a project allows, such as "3.10 to 3.13"."""
    required = project["project"]["requires-python"]
    low, above = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", required).groups()
    return f"3.{low} to 3.{int(above) - 1}"


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
