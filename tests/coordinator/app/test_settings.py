"""Where the cache lies."""

from pathlib import Path

import pytest

from coordinator.app.settings import default_cache_folder

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("variable", ["STAGEWIRE_CACHE", "XDG_CACHE_HOME"])
def test_the_cache_folder_has_no_link_in_it(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("STAGEWIRE_CACHE", raising=False)
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.setenv(variable, str(tmp_path / "link"))

    folder = tmp_path / "disk"
    assert default_cache_folder() == (folder if "STAGE" in variable else folder / "stagewire")


def test_a_relative_cache_folder_of_the_desktop_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.delenv("STAGEWIRE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert default_cache_folder() == Path(tmp_path, ".cache", "stagewire").resolve()
