"""What has to be downloaded is said before it is, also where no interpreter suits a worker."""

import platform

import pytest

from stagewire.errors import EnvironmentMissingError
from testkit import plans
from testkit.running import make

pytestmark = pytest.mark.integration

NOT_OURS = f">=3.10,<3.14,!={platform.python_version()}"
PROJECT = f"""
[project]
name = "worker-tiny"
version = "0.1.0"
license = "MIT"
requires-python = "{NOT_OURS}"
dependencies = ["iniconfig"]
[tool.hatch.build.targets.wheel]
packages = ["worker_tiny"]
[tool.stagewire]
executes = [{{ executor = "fake", device = "cpu" }}]
"""
LOCK = f"""
version = 1
revision = 3
requires-python = "{NOT_OURS}"

[[package]]
name = "iniconfig"
version = "2.1.0"
source = {{ registry = "https://pypi.org/simple" }}
wheels = [
    {{ url = "https://files.pythonhosted.org/iniconfig-2.1.0-py3-none-any.whl", hash = "sha256:{"0" * 64}", size = 6050 }},
]

[[package]]
name = "worker-tiny"
version = "0.1.0"
source = {{ editable = "." }}
dependencies = [{{ name = "iniconfig" }}]

[package.metadata]
requires-dist = [{{ name = "iniconfig" }}]
"""  # noqa: E501


@pytest.fixture
def coordinator(tmp_path, monkeypatch):
    """One whose worker needs a Python that this machine does not have."""
    for name in ("worker", "programs", "pythons"):
        (tmp_path / name).mkdir()
    (tmp_path / "worker/pyproject.toml").write_text(PROJECT)
    (tmp_path / "worker/uv.lock").write_text(LOCK)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    plan = plans.single()
    plan["workers"]["a"] = {"kind": "tiny", "environment": str(tmp_path / "worker")}
    plan["workers"]["b"] = dict(plan["workers"]["a"])
    plan["stages"]["two"] = plans.stage("b")
    plan["pipelines"]["q"] = plans.pipeline({"x": "two.x"}, {"y": "two.y"})
    return make(tmp_path, plan)


def test_a_python_that_is_missing_is_among_the_downloads_once(coordinator):
    downloads = coordinator.downloads()

    assert [item.name for item in downloads] == ["Python 3.13", "environment worker-tiny"]
    python, environment = downloads
    assert (python.licence, environment.licence) == ("PSF-2.0", "MIT")
    assert 20 << 20 < python.size_bytes < 100 << 20
    assert environment.size_bytes == 6050


def test_without_permission_it_is_refused_with_the_way_to_get_it(coordinator):
    with pytest.raises(EnvironmentMissingError, match=r"uv python install 3\.13.*--yes") as caught:
        coordinator.preparation.environments()
    assert NOT_OURS in caught.value.message
