"""Where figures come from: code, machine, libraries, variables. Paths are shown without homes."""

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

ROOT: Final = Path(__file__).resolve().parents[2]
_LIBRARIES: Final = ("grpcio", "numpy", "protobuf", "psutil", "pydantic", "typer")
_VARIABLES: Final = re.compile(
    r"^(OMP|OPENBLAS|MKL|KMP|GOMP|GRPC|MALLOC|PYTHON|STAGEWIRE|ORT|TOKENIZERS)_?\w*$"
    r"|^(LD_PRELOAD|LD_LIBRARY_PATH|GLIBC_TUNABLES|CUDA_VISIBLE_DEVICES)$"
)
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSWORD|KEY", re.IGNORECASE)
_UNMEASURED: Final = ("benchmarks/results", "docs", "tests")
"""What may have uncommitted changes without changing a figure."""
_PLACES: Final = (
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/fs/cgroup/cpu.max",
)


def now() -> str:
    """Returns the time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def gather() -> dict[str, Any]:  # JSON
    """Returns what figures depend on beside the arms."""
    return {
        "commit": git("rev-parse", "HEAD"),
        "is_dirty": is_dirty(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "affinity": sorted(os.sched_getaffinity(0)),
        "governor": _read(_PLACES[0]),
        "quota": _read(_PLACES[1]),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in _LIBRARIES},
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if _VARIABLES.match(name) and not _SECRET.search(name)
        },
    }


def is_dirty(folder: Path = ROOT) -> bool:
    """Whether the checkout has changes that figures may depend on and that no commit has."""
    lines = git("status", "--porcelain", "--untracked-files=normal", folder=folder).splitlines()
    paths = [line[2:].strip().rpartition(" -> ")[2] for line in lines]
    return any(not path.startswith(_UNMEASURED) for path in paths)


def git(*words: str, folder: Path = ROOT) -> str:
    """Returns what git says; nothing outside of a repository."""
    result = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return result.stdout.strip("\n") if result.returncode == 0 else ""


def without_homes(content: Any) -> Any:  # JSON
    """Returns a JSON value whose texts name no folder of this machine."""
    if isinstance(content, str):
        for place, shown in _shown_places().items():
            content = content.replace(place, shown)
        return content
    if isinstance(content, Mapping):
        return {without_homes(name): without_homes(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [without_homes(item) for item in content]
    return content


def _shown_places() -> dict[str, str]:
    """Returns folders and what stands for them, inner ones first."""
    return {f"{ROOT}/": "", str(ROOT): ".", str(Path.home()): "~"}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
