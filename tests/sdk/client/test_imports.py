"""What importing `stagewire.client` costs."""

import importlib.resources
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration


def loaded_after(statement):
    result = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return set(result.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import stagewire.client") & {"grpc", "numpy", "google.protobuf", "PIL"}


def test_reading_media_loads_no_grpc():
    assert "grpc" not in loaded_after("from stagewire.client import audio, text, write_wav")


@pytest.mark.parametrize("name", ["AsyncClient", "connect_async", "AsyncSession", "Session"])
def test_each_client_loads_only_grpc_and_numpy(name):
    loaded = loaded_after(f"from stagewire.client import {name}")
    assert {"grpc", "numpy"} <= loaded
    assert not loaded & {"psutil", "PIL", "ml_dtypes", "pydantic", "rich", "yaml", "coordinator"}
    assert not {"stagewire.worker", "stagewire.client.testing"} & loaded


def test_the_client_loads_nothing_that_its_distribution_does_not_depend_on():
    loaded = loaded_after("from stagewire.client import Call, Client, Result, audio, connect")
    assert {"grpc", "numpy"} <= loaded
    assert not loaded & {"psutil", "PIL", "ml_dtypes", "pydantic", "rich", "yaml", "coordinator"}
    assert "stagewire.worker" not in loaded


def test_the_package_is_typed():
    assert importlib.resources.files("stagewire").joinpath("py.typed").is_file()
