"""Writes `requirements/`: the oldest and the newest versions that our projects allow, with hashes.

Run by `uv run python tests/skew/pin.py` when a bound in a pyproject.toml changed, or to see whether
what was published since still fits.
"""

import subprocess
from pathlib import Path
from typing import Final

import uv

ROOT: Final = Path(__file__).resolve().parents[2]
PINS: Final = Path(__file__).resolve().parent / "requirements"
_TOOLS: Final = ("pytest>=8.4", "pytest-asyncio>=1.2", "pytest-timeout>=2.4", "hypothesis>=6.150")

ENDS: Final = {"oldest": "lowest-direct", "newest": "highest"}
"""How versions are chosen at either end of what is allowed."""
SIDES: Final = {
    # Without anything optional, but for what every worker has.
    "oldest-sdk": ("3.10", "sdk/pyproject.toml", ("worker",), ()),
    "newest-sdk": ("3.11", "sdk/pyproject.toml", ("worker", "ml-dtypes"), ()),
    "oldest-coordinator": ("3.11", "pyproject.toml", (), ()),
    "newest-coordinator": ("3.11", "pyproject.toml", (), ()),
    "oldest-tests": ("3.10", "sdk/pyproject.toml", ("worker", "ml-dtypes"), _TOOLS),
}
"""Of each file: the oldest Python, the project, its extras, and what is needed beside it."""


def pins(name: str) -> str:
    """Returns the requirements of one side, as they would be written now."""
    python, project, extras, tools = SIDES[name]
    resolution = ENDS[name.partition("-")[0]]
    command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--universal"]
    command += ["--generate-hashes", "--no-annotate", "--no-header"]
    command += ["--python-version", python, "--resolution", resolution]
    command += [option for extra in extras for option in ("--extra", extra)]
    # Our own are built from the checkout.
    command += ["--no-emit-package", "stagewire", project, "-"]
    result = subprocess.run(
        command,
        cwd=ROOT,
        input="\n".join(tools),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return f"# {resolution} for Python {python} and newer, written by pin.py\n{result.stdout}"


if __name__ == "__main__":
    for side in SIDES:
        (PINS / f"{side}.txt").write_text(pins(side))
