"""The folder of real models, and commands in the environments of workers."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest
import uv

WORKERS = Path(__file__).resolve().parents[2] / "workers"
OURS = ("stagewire", "ortkit", "worker-cpu", "worker-speech")
NOT_THEIRS = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH")


@pytest.fixture
def run_python():
    """Runs Python in the environment that a worker's lock describes, with our code as it is now."""

    def run(worker: str, *arguments: str, **variables: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_THEIRS}
        result = subprocess.run(
            [
                *(uv.find_uv_bin(), "run", "--locked", "--directory", str(WORKERS / worker)),
                # Versions of our own packages do not change with their code.
                *(option for name in OURS for option in ("--reinstall-package", name)),
                *("python", *arguments),
            ],
            env=inherited | {"UV_NO_CONFIG": "1", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]
        return result.stdout

    return run


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The folder that STAGEWIRE_TEST_MODELS names, or one in the user's cache, filled."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("STAGEWIRE_TEST_MODELS") or cache / "stagewire-tests" / "models")
    # Test folders are no packages, so the module beside this one is loaded by its path.
    spec = importlib.util.spec_from_file_location(
        "model_files", Path(__file__).with_name("model_files.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.fill(folder)
    return folder
