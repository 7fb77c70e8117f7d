"""The folder of real models."""

import importlib.util
import os
from pathlib import Path

import pytest


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
