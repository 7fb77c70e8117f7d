"""What CI makes of a skipped test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SKIPS_ITSELF = "import pytest\ndef test_one():\n    pytest.skip('no device')\n"
IS_MARKED = "import pytest\n@pytest.mark.skip(reason='no device')\ndef test_one(): pass\n"
SKIPS_ITS_MODULE = "import pytest\npytest.skip('no device', allow_module_level=True)\n"
LACKS_A_MODULE = "import pytest\npytest.importorskip('no_such_module', reason='no device')\n"
FAILS_AS_EXPECTED = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_one(): assert 0\n"


def run_pytest(folder: Path, module: str, ci: str) -> subprocess.CompletedProcess[str]:
    # Below a `tests` folder of its own, so that no settings of this repository apply.
    shutil.copy(Path(__file__).parents[1] / "conftest.py", folder / "conftest.py")
    (folder / "test_module.py").write_text(module)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={**os.environ, "CI": ci},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("module", [SKIPS_ITSELF, IS_MARKED, SKIPS_ITS_MODULE, LACKS_A_MODULE])
def test_a_skip_fails_in_ci_with_its_reason(tmp_path, module):
    result = run_pytest(tmp_path, module, ci="true")
    assert result.returncode in (1, 2), result.stdout
    assert "skipped, which CI forbids: " in result.stdout
    assert "no device" in result.stdout


@pytest.mark.parametrize("ci", ["", "false"])
def test_a_skip_is_a_skip_elsewhere(tmp_path, ci):
    result = run_pytest(tmp_path, SKIPS_ITSELF, ci=ci)
    assert result.returncode == 0, result.stdout
    assert "1 skipped" in result.stdout


def test_an_expected_failure_is_no_skip(tmp_path):
    result = run_pytest(tmp_path, FAILS_AS_EXPECTED, ci="true")
    assert result.returncode == 0, result.stdout
    assert "1 xfailed" in result.stdout
