"""The sdk alone under what it allows: every module is imported, and its own tests of bytes pass."""

import subprocess
from pathlib import Path

import pytest

from .conftest import SECONDS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = """
import importlib, pkgutil, sys, stagewire
names = [each.name for each in pkgutil.walk_packages(stagewire.__path__, "stagewire.")]
for name in names:
    importlib.import_module(name)
optional = {"soundfile", "PIL", "ml_dtypes"} & set(sys.modules)
print(len(names), *sorted(optional))
"""
OF_BYTES = ("bits", "envelope", "frame", "items", "ports", "rounding", "status", "tensor")


def run(python, *arguments, folder):
    done = subprocess.run(
        [str(python), "-I", *map(str, arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("name", ["oldest-sdk", "newest-sdk"])
def test_every_module_is_imported_without_a_warning_and_without_what_is_optional(
    python_of, tmp_path, name
):
    count, *optional = run(python_of(name), "-W", "error", "-c", IMPORTS, folder=tmp_path).split()
    assert int(count) > 50
    assert not optional


def test_its_own_tests_of_bytes_pass_with_the_oldest_of_everything(python_of, tmp_path):
    files = [ROOT / "tests" / "sdk" / f"test_{name}.py" for name in OF_BYTES]
    settings = ("-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}", "-p", "no:cacheprovider")
    # As in CI: on a machine that is busy no example takes too long.
    command = ("-m", "pytest", "-q", "--hypothesis-profile=ci", *settings)
    run(python_of("oldest-tests"), *command, *files, folder=tmp_path)
