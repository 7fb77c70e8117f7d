"""What is tested as the oldest is what our projects say that they allow."""

import re
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.version import Version

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).resolve().parent / "requirements"
PROJECTS = {"sdk": "sdk/pyproject.toml", "coordinator": "pyproject.toml"}


def pinned(name):
    """Versions by name; of several for different Pythons the one for this Python."""
    lines = re.findall(r"^(\S+)==(\S+)(?: ; ([^\\\n]+))?", (PINS / name).read_text(), re.MULTILINE)
    return {
        package: Version(version)
        for package, version, marker in lines
        if not marker or Requirement(f"{package} ; {marker.strip()}").marker.evaluate()
    }


def bounds(side):
    project = tomllib.loads((ROOT / PROJECTS[side]).read_text())["project"]
    found = map(Requirement, project["dependencies"])
    return {each.name: each.specifier for each in found if each.name != "stagewire"}


@pytest.mark.parametrize("side", PROJECTS)
def test_the_oldest_pins_are_the_lower_bounds(side):
    pins = pinned(f"oldest-{side}.txt")
    for name, specifier in bounds(side).items():
        lowest = next(Version(each.version) for each in specifier if each.operator == ">=")
        # A release that its author took back is passed over.
        found = pins[name].major, pins[name].minor
        assert found == (lowest.major, lowest.minor), f"{name}: run tests/skew/pin.py"
        assert specifier.contains(pins[name])


@pytest.mark.parametrize("side", PROJECTS)
def test_the_newest_pins_are_allowed(side):
    pins = pinned(f"newest-{side}.txt")
    assert all(specifier.contains(pins[name]) for name, specifier in bounds(side).items())


def test_the_stubs_load_with_the_lower_bound_of_grpcio():
    # What they were generated with is the oldest that they accept.
    stub = (ROOT / "sdk/stagewire/v1/coordinator_pb2_grpc.py").read_text()
    generated = re.search(r"GRPC_GENERATED_VERSION = '(.+)'", stub)[1]
    assert pinned("oldest-sdk.txt")["grpcio"] == Version(generated)
    assert not bounds("sdk")["grpcio"].contains(f"{Version(generated).major}.0")
