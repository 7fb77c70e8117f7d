"""Habits that no linter of this repository checks."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "sdk/stagewire/v1"
PRODUCT = ("coordinator", "sdk", "workers", "protos", "docs", "benchmarks")
TIERS = re.compile(r"pytest\.mark\.(unit|integration|end_to_end)\b")

LONGEST_MODULE = 400
LONGER_MODULES = {
    "sdk/stagewire/errors.py": "the one table of failures; its value is that it is one",
}
"""Modules that may be longer, each with the reason."""

FORBIDDEN_IMPORTS = {"pickle", "cPickle", "marshal", "shelve", "dill", "joblib"}
# Put together here, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile(
    "|".join(f"/{name}/" for name in ("work", "root")) + r"|/home/(?!user\b)\w"
)


def files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if (not name.startswith(".") or name == ".ci")
            and name not in ("__pycache__", "build", "dist", "wheels", "node_modules")
            and Path(folder, name) != GENERATED
        ]
        yield from (Path(folder, name) for name in names)


TEXTS = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for path in files()
    if path.stat().st_size < 2 << 20 and b"\0" not in path.read_bytes()
}
MODULES = {path: text for path, text in TEXTS.items() if path.suffix == ".py"}
PRODUCT_MODULES = {
    path: text
    for path, text in MODULES.items()
    if path.parts[0] in PRODUCT and "tests" not in path.parts
}
TEST_MODULES = {path: text for path, text in MODULES.items() if path.name.startswith("test_")}


def test_the_walk_sees_the_repository():
    assert Path("sdk/stagewire/errors.py") in PRODUCT_MODULES
    assert Path(".ci/run") in TEXTS
    assert Path("tests/repository/test_hygiene.py") in TEST_MODULES


def test_no_file_names_a_path_of_one_machine():
    found = [
        f"{path}:{number}"
        for path, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATHS.search(line)
    ]
    assert not found


def dangers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (
                    (node.lineno, f"import {name.name}")
                    for name in names
                    if name.name.partition(".")[0] in FORBIDDEN_IMPORTS
                )
            case ast.ImportFrom(module=str(module)) if (
                module.partition(".")[0] in FORBIDDEN_IMPORTS
            ):
                yield node.lineno, f"from {module} import"
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                yield node.lineno, f"{name}()"
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id="yaml"),
                    attr="load" | "load_all" | "full_load" | "unsafe_load" as name,
                )
            ):
                yield node.lineno, f"yaml.{name}()"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen" as name)
            ):
                yield node.lineno, f"os.{name}()"
            case (
                ast.keyword(arg="shell" | "allow_pickle" as name, value=ast.Constant(value=True))
                | ast.keyword(arg="weights_only" as name, value=ast.Constant(value=False))
            ):
                yield node.value.lineno, f"{name}="


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "subprocess.run('ls', shell=True)",
        "yaml.load(text, Loader)",
        "eval('1')",
        "numpy.load(path, allow_pickle=True)",
        "torch.load(path, weights_only=False)",
    ],
)
def test_what_can_run_foreign_code_is_recognised(code):
    assert list(dangers(ast.parse(code)))


@pytest.mark.parametrize("code", ["model.eval()", "yaml.compose(text)", "subprocess.run(['ls'])"])
def test_what_cannot_run_foreign_code_is_let_through(code):
    assert not list(dangers(ast.parse(code)))


def test_nothing_in_the_product_can_run_foreign_code():
    found = [
        f"{path}:{line}: {what}"
        for path, text in PRODUCT_MODULES.items()
        for line, what in dangers(ast.parse(text))
    ]
    assert not found


def test_modules_are_short_enough_to_be_read():
    lengths = {path.as_posix(): len(text.splitlines()) for path, text in PRODUCT_MODULES.items()}
    too_long = {path: length for path, length in lengths.items() if length > LONGEST_MODULE}
    assert too_long.keys() == LONGER_MODULES.keys(), too_long


def test_every_public_module_says_what_it_owns():
    silent = [
        str(path)
        for path, text in PRODUCT_MODULES.items()
        if text.strip() and not path.name.startswith("_") and not ast.get_docstring(ast.parse(text))
    ]
    assert not silent


def test_every_test_module_names_its_tier():
    assert not [str(path) for path, text in TEST_MODULES.items() if not TIERS.search(text)]


def test_nothing_is_left_to_do():
    later = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    assert not [
        f"{path}:{number}"
        for path, text in MODULES.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if later.search(line)
    ]


@pytest.mark.parametrize("page", sorted(str(path) for path in TEXTS if path.suffix == ".md"))
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", TEXTS[Path(page)], flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [
        target for target in targets if "://" not in target and not target.startswith("mailto:")
    ]
    assert not [target for target in local if not (ROOT / page).parent.joinpath(target).exists()]
