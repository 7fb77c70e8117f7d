import pytest

from coordinator.reach.tool import KEPT_LINES, ToolResult, build_failure, tool_environment

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "line",
    [
        "hint: Packages were unavailable because the network was disabled.",
        "  cause: Network connectivity is disabled, but the requested data wasn't found",
        "error: No solution found when resolving dependencies",
    ],
)
def test_every_way_of_uv_to_say_that_its_cache_lacks_something_is_known(line):
    assert ToolResult(1, "", ("error: something", line)).is_cache_short
    assert not ToolResult(0, "", (line,)).is_cache_short


def test_another_failure_is_no_reason_to_ask_for_a_download():
    assert not ToolResult(2, "", ("error: Failed to parse: `pyproject.toml`",)).is_cache_short


def test_a_failure_shows_the_last_lines():
    result = ToolResult(2, "", tuple(f"line {number}" for number in range(KEPT_LINES)))

    message = build_failure("building", result).message

    assert message.splitlines() == ["building failed (uv ended with 2):", *result.last_lines]


def test_tools_see_neither_an_activated_environment_nor_python_settings(monkeypatch):
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "CONDA_PREFIX", "PIP_INDEX_URL", "UV_PYTHON"):
        monkeypatch.setenv(name, "/somewhere")
    monkeypatch.setenv("UV_CACHE_DIR", "/cache")

    variables = tool_environment()

    assert "/somewhere" not in variables.values()
    assert variables["UV_CACHE_DIR"] == "/cache"
